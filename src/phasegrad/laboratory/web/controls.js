/** Small parts of the page: sliders with a label and a value, choices, and numbers in words. */

/** A number as people write it: few digits, a true minus. */
export function words(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 1e-4 || size >= 1e5 ? value.toExponential(Math.max(0, digits - 2))
    : Number(value.toPrecision(digits)).toString();
  return text.replaceAll("-", "−");
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = 100 * share;
  return `${value >= 10 ? value.toFixed(0) : Number(value.toPrecision(2))} %`;
}

/** An element with attributes and children. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A slider with its label and value; `show` puts the value in words, `change` is told of every new one. */
export function slider({ id, label, least, most, step, value, show = (each) => words(each), change }) {
  const output = element("output", { htmlFor: id });
  const input = element("input", { type: "range", id, min: least, max: most, step });
  const put = (each) => {
    input.value = each;
    output.textContent = show(each);
    input.setAttribute("aria-valuetext", show(each));
  };
  input.addEventListener("input", () => {
    const each = Number(input.value);
    put(each);
    change(each);
  });
  put(value);
  const row = element("div", { className: "slider" }, element("label", { htmlFor: id }, label), output, input);
  return Object.assign(row, { put, input });
}

/** A choice among named options. */
export function choice({ id, label, options, value, change }) {
  const select = element("select", { id },
    ...Object.entries(options).map(([key, text]) => element("option", { value: key }, text)));
  select.value = value;
  select.addEventListener("change", () => change(select.value));
  return Object.assign(element("div", { className: "choice" }, element("label", { htmlFor: id }, label), select),
    { select });
}

/** Radio buttons in a group that says what they are for. */
export function radios({ name, label, options, value, change }) {
  const group = element("fieldset", { className: "radios" }, element("legend", {}, label));
  for (const [key, text] of Object.entries(options)) {
    const input = element("input",
      { type: "radio", name, value: key, id: `${name}-${key}`, checked: key === String(value) });
    input.addEventListener("change", () => change(key));
    group.append(element("label", {}, input, element("span", {}, text)));
  }
  const put = (key) =>
    group.querySelectorAll("input").forEach((input) => (input.checked = input.value === String(key)));
  return Object.assign(group, { put });
}
