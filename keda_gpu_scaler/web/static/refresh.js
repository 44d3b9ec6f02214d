// Shows what has changed, without a reload that would lose the place on the page and the focus.
"use strict";
const seconds = Number(document.currentScript.dataset.seconds);
const main = document.getElementById("content");
const live = document.getElementById("live");
let tag = "";

function isInUse() {
  return main.querySelector("form")?.contains(document.activeElement) || !getSelection().isCollapsed;
}

// What keeps its place: parts that were opened, how far parts were moved aside, and the focus.
function place() {
  const opened = [...main.querySelectorAll("details[open] > summary")].map((one) => one.textContent);
  const moved = [...main.querySelectorAll(".wide")].map((one) => one.scrollLeft);
  const links = [...main.querySelectorAll("a, summary, [tabindex]")];
  const focused = links.indexOf(document.activeElement);
  return () => {
    main.querySelectorAll("summary").forEach((one) => {
      one.parentElement.open = opened.includes(one.textContent);
    });
    main.querySelectorAll(".wide").forEach((one, number) => { one.scrollLeft = moved[number] ?? 0; });
    if (focused >= 0) {
      main.querySelectorAll("a, summary, [tabindex]")[focused]?.focus({ preventScroll: true });
    }
  };
}

async function refresh() {
  if (document.hidden || isInUse()) {
    return;
  }
  const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {} });
  if (answer.status !== 200 && answer.status !== 304) {
    throw new Error(`HTTP ${answer.status}`);
  }
  if (answer.status === 200) {
    tag = answer.headers.get("ETag") ?? "";
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const restore = place();
    main.replaceChildren(...fresh.getElementById("content").childNodes);
    restore();
  }
  live.className = "";
  live.textContent = "";
}

function failed() {
  if (live.className === "") {
    live.className = "lost";
    live.textContent = `not renewed since ${new Date().toLocaleTimeString()}`;
  }
}

function renew() {
  refresh().catch(failed);
}

setInterval(renew, seconds * 1000);
document.addEventListener("visibilitychange", renew);
