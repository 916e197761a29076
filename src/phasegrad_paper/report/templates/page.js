(() => {
  "use strict";
  // Without this script everything is shown; with it studies fold, and verdicts are filters.
  const folds = [...document.querySelectorAll("details.fold")];
  const claims = [...document.querySelectorAll("[data-verdict]")];
  const groups = [...document.querySelectorAll(".claims tbody")];
  const status = document.getElementById("shown");
  const chosen = new Set();
  const buttons = new Map();

  const filter = () => {
    for (const claim of claims) claim.hidden = chosen.size > 0 && !chosen.has(claim.dataset.verdict);
    for (const group of groups) group.hidden = !group.querySelector("tr[data-verdict]:not([hidden])");
    for (const [kind, button] of buttons) button.setAttribute("aria-pressed", String(chosen.has(kind)));
    const rows = claims.filter(claim => claim.matches("tr"));
    const left = rows.filter(row => !row.hidden).length;
    status.textContent = chosen.size ? `${left} of ${rows.length} claims are shown. ` : "";
    if (chosen.size) status.append(all);
  };

  const reveal = target => {
    if (target.closest("[hidden]")) {
      chosen.clear();
      filter();
    }
    const inner = target.querySelector(":scope > details");
    for (let fold = inner || target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    target.scrollIntoView();
  };

  const follow = () => {
    const words = decodeURIComponent(location.hash.slice(1));
    const target = document.getElementById(words);
    if (target) {
      reveal(target);
    } else {
      const kinds = words.startsWith("verdict=") ? words.slice(8).split("+") : [];
      chosen.clear();
      for (const kind of kinds) if (buttons.has(kind)) chosen.add(kind);
      filter();
    }
  };

  const press = kind => {
    if (kind === undefined) chosen.clear();
    else if (!chosen.delete(kind)) chosen.add(kind);
    location.hash = `verdict=${chosen.size ? [...chosen].join("+") : "all"}`;
    filter();
  };

  const all = document.createElement("button");
  all.type = "button";
  all.className = "plain";
  all.textContent = "Show all";
  all.addEventListener("click", () => press());

  for (const item of document.querySelectorAll(".tally li")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...item.childNodes);
    button.addEventListener("click", () => press(item.dataset.kind));
    item.append(button);
    buttons.set(item.dataset.kind, button);
  }
  document.documentElement.classList.add("scripted");

  for (const fold of folds) fold.open = false;
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = folds.filter(fold => !fold.open);
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
  addEventListener("hashchange", follow);
  // A link to where one is already changes nothing in the address, and must open what it leads to all the same.
  document.addEventListener("click", event => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) follow();
  });
  follow();
})();
