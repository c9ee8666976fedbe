// Keeps a page up to date: when the operator says that something has changed, the parts of the page that live are
// fetched again, at most once a second. Without this script each page is complete, as of the time it was fetched.
"use strict";
(function () {
  const interval = 1000;
  let last = 0, timer = 0, busy = false, again = false;

  function fragmentURL() {
    const url = new URL(window.location.href);
    url.searchParams.set("fragment", "1");
    return url;
  }

  // replace gives the living parts their new content. What is the same stays, so that nothing is read aloud twice, and
  // a part with the focus in it waits.
  function replace(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const found = fresh.getElementById(part.id);
      if (!found || found.innerHTML === part.innerHTML || window.getSelection().containsNode(part, true) &&
          !window.getSelection().isCollapsed) {
        continue;
      }
      const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      part.replaceChildren(...found.childNodes);
      if (focused !== null) {
        const same = part.querySelector('a[href="' + CSS.escape(focused) + '"]');
        if (same) same.focus({ preventScroll: true });
      }
    }
    for (const note of document.querySelectorAll(".live")) note.hidden = false;
  }

  async function refresh() {
    timer = 0;
    if (busy) { again = true; return; }
    busy = true;
    last = Date.now();
    try {
      const response = await fetch(fragmentURL(), { cache: "no-store" });
      if (response.ok) replace(await response.text());
    } catch (e) {
      // The operator is restarting. The stream says when it is back.
    }
    busy = false;
    if (again) { again = false; soon(); }
  }

  function soon() {
    if (timer === 0) timer = window.setTimeout(refresh, Math.max(0, last + interval - Date.now()));
  }

  const events = document.body.dataset.events;
  if (!events || !window.EventSource) return;
  let source = null;
  function connect() {
    if (source === null) {
      source = new EventSource(events);
      source.addEventListener("changed", soon);
      source.addEventListener("open", soon);
    }
  }
  // A page that nobody looks at asks for nothing.
  document.addEventListener("visibilitychange", function () {
    if (!document.hidden) { connect(); return; }
    if (source !== null) { source.close(); source = null; }
  });
  connect();
})();
