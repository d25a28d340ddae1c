"use strict";
// The page works without this script; with it, what changes on the server changes here.

const live = document.querySelector("[data-live]");
const connection = document.getElementById("connection");

function show(html) {
  Idiomorph.morph(live, html, {
    morphStyle: "innerHTML",
    ignoreActiveValue: true,
    callbacks: {
      // A form in which somebody may have written stays, until it asks something else.
      beforeNodeMorphed(old, fresh) {
        if (old.nodeType !== Node.ELEMENT_NODE) return true;
        if (old.dataset.keep !== undefined && old.dataset.keep === fresh.dataset.keep) return false;
        return old.id !== "report-frame";
      },
      // What a person opened or chose stays so.
      beforeAttributeUpdated(name, node) {
        return !(name === "open" && node.tagName === "DETAILS") && !(name === "checked" && node.tagName === "INPUT");
      },
    },
  });
}

function isConnected(is) {
  connection.hidden = is;
}

let stream;

function follow() {
  if (document.hidden || (stream && stream.readyState !== EventSource.CLOSED)) return;
  stream = new EventSource(live.dataset.live);
  stream.onopen = () => isConnected(true);
  stream.onmessage = (message) => {
    isConnected(true);
    show(message.data);
  };
  stream.onerror = () => {
    isConnected(false);
    // A browser gives up on an answer that is no stream, such as that of a server that is starting.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 1000);
  };
}

if (live && window.Idiomorph) {
  follow();
  // A browser has six connections to one address: pages that are not looked at use none.
  document.addEventListener("visibilitychange", () => (document.hidden ? stream && stream.close() : follow()));
  window.addEventListener("pagehide", () => stream && stream.close());
  window.addEventListener("pageshow", follow);
}

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  const question = button && button.dataset.confirm;
  if (question && !window.confirm(question)) {
    event.preventDefault();
    return;
  }
  // A second press of the same button sends nothing.
  if (event.target.method === "post") setTimeout(() => button && (button.disabled = true), 0);
});
