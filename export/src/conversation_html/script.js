"use strict";
// Texts of the page are read and never written: nothing here makes HTML.
const items = [...document.querySelectorAll("article")];
const query = document.getElementById("query");
const found = document.getElementById("found");
const fold = document.getElementById("fold");

function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const item of items) {
    const text = words.length ? item.textContent.toLowerCase() : "";
    const matches = words.every((word) => text.includes(word));
    item.hidden = !matches;
    count += matches ? 1 : 0;
  }
  for (const agent of document.querySelectorAll("details.subagent")) {
    const matches = agent.querySelector("article:not([hidden])") !== null;
    agent.hidden = words.length > 0 && !matches;
    if (words.length && matches) agent.open = true;
  }
  found.textContent = words.length ? count + " of " + items.length : "";
}

function setFolded(folded) {
  for (const details of document.querySelectorAll("details")) details.open = !folded;
  fold.textContent = folded ? "Unfold all" : "Fold all";
}

function show() {
  const target = /^#(s\w+-)?e\d+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
  if (!target) return;
  target.hidden = false;
  for (let around = target.parentElement; around; around = around.parentElement) {
    if (around.localName === "details") around.open = true;
    around.hidden = false;
  }
  for (const details of target.querySelectorAll("details")) details.open = true;
  target.scrollIntoView();
}

query.addEventListener("input", search);
query.form.addEventListener("submit", (event) => event.preventDefault());
fold.addEventListener("click", () => setFolded(fold.textContent === "Fold all"));
window.addEventListener("hashchange", show);
show();
