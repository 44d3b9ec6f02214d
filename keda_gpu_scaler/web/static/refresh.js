// Shows what has changed, without a reload that would lose the place on the page and the focus.
"use strict";
const seconds = Number(document.currentScript.dataset.seconds);
let tag = "";

async function refresh() {
  if (document.hidden || document.querySelector("form")?.contains(document.activeElement)) {
    return;
  }
  const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {} });
  if (answer.status !== 200) {
    return;
  }
  tag = answer.headers.get("ETag") ?? "";
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const opened = [...document.querySelectorAll("details")].map((one) => one.open);
  const main = document.getElementById("content");
  main.replaceChildren(...fresh.getElementById("content").childNodes);
  main.querySelectorAll("details").forEach((one, number) => { one.open = opened[number] ?? false; });
}

setInterval(() => refresh().catch(() => {}), seconds * 1000);
