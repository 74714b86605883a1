// Titles of marks become one tooltip, at once and at the pointer; the browser's own would come second.
{
  const tip = document.getElementById("tip");
  let here = null, byKey = false;
  const words = (mark) => {
    const title = mark.querySelector(":scope > title");
    if (title) { mark.dataset.tip = title.textContent; title.remove(); }
    return mark.dataset.tip;
  };
  const hide = () => {
    if (here) here.classList.remove("here");
    here = null; tip.hidden = true;
  };
  const show = (mark, x, y) => {
    if (mark !== here) {
      hide();
      here = mark; mark.classList.add("here");
      tip.textContent = words(mark); tip.hidden = false;
    }
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
  };
  const at = (target) => {
    const mark = target.closest ? target.closest("svg *") : null;
    return mark && (mark.dataset.tip || mark.querySelector(":scope > title")) ? mark : null;
  };
  document.addEventListener("pointermove", (event) => {
    const mark = at(event.target);
    byKey = false;
    if (mark) show(mark, event.clientX, event.clientY); else hide();
  });
  document.addEventListener("pointerleave", hide);
  // A drawing that is focused scrolls into sight: what a key has shown moves along.
  const beside = (mark) => {
    const box = mark.getBoundingClientRect();
    show(mark, box.right, box.bottom);
  };
  document.addEventListener("scroll", () => { if (here && byKey) beside(here); else hide(); }, true);
  for (const drawing of document.querySelectorAll("svg:has(.mark)")) {
    const marks = [...drawing.querySelectorAll(".mark")];
    drawing.tabIndex = 0;
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const place = (marks.indexOf(here) + step + marks.length) % marks.length;
      byKey = true;
      beside(marks[place]);
    });
    drawing.addEventListener("blur", hide);
  }
}
