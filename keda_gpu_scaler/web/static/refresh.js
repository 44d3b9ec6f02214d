// Shows what has changed, unless the page is in use: then it stays as it is.
"use strict";
const seconds = Number(document.currentScript.dataset.seconds);
const live = document.getElementById("live");

async function refresh() {
  const main = document.querySelector("main");
  const isFocused = main.contains(document.activeElement);
  const isUsed = isFocused || main.querySelector("details[open]") || !getSelection().isCollapsed;
  if (document.hidden || isUsed) {
    return;
  }
  const answer = await fetch(location.href);
  if (!answer.ok) {
    throw new Error(`HTTP ${answer.status}`);
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  main.replaceWith(fresh.querySelector("main"));
  live.textContent = "";
}

function renew() {
  refresh().catch(() => { live.textContent = "not renewed: the scaler does not answer"; });
}

setInterval(renew, seconds * 1000);
document.addEventListener("visibilitychange", renew);
