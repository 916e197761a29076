// Marks tables and code that are wider than the page, so that the style sheet can say that they scroll.
(() => {
  const mark = () => {
    for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap"))
      wrap.classList.toggle("scrolls", wrap.scrollWidth > wrap.clientWidth + 1);
    for (const code of document.querySelectorAll(".md-typeset pre > code"))
      code.parentElement.classList.toggle("scrolls", code.scrollWidth > code.clientWidth + 1);
    document.body.dataset.marked = "yes";
  };
  // Tables are wrapped by the theme after the page was read.
  window.addEventListener("load", () => setTimeout(mark, 100));
  window.addEventListener("resize", mark);
})();
