"use strict";
// Which trials are shown: by text and by how they ended.
const trials = Array.from(document.querySelectorAll("details.trial"));
const search = document.getElementById("search");
const chosen = new Set();

function refresh() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const trial of trials) {
    const text = trial.textContent.toLowerCase();
    const fits = (chosen.size === 0 || chosen.has(trial.dataset.look)) && words.every((word) => text.includes(word));
    trial.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  document.getElementById("shown").textContent = shown + " of " + trials.length + " shown";
}

for (const button of document.querySelectorAll("button[data-look]")) {
  button.addEventListener("click", () => {
    const look = button.dataset.look;
    if (chosen.has(look)) chosen.delete(look); else chosen.add(look);
    button.setAttribute("aria-pressed", String(chosen.has(look)));
    refresh();
  });
}
search.addEventListener("input", refresh);
document.getElementById("open").addEventListener("click", () => {
  const shown = trials.filter((trial) => !trial.hidden);
  const open = shown.some((trial) => !trial.open);
  for (const trial of shown) trial.open = open;
});
// A link to a trial opens it.
function follow() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  if (target !== null && target.tagName === "DETAILS") {
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", follow);
document.querySelector(".tools").hidden = false;
refresh();
follow();
