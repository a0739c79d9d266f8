// Live updates, theme, copying and keys. Without this file every view can be read and every form be sent.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("scripted");
  const find = (selector) => document.querySelector(selector);

  // Age of the last look: the server's figure, and the time since it came. Another figure starts anew.
  let age = { said: "", since: 0 };
  const lasted = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 120) return `${s} s`;
    if (s < 7200) return `${Math.floor(s / 60)} min`;
    const h = Math.floor(s / 3600), min = Math.floor((s % 3600) / 60);
    if (s < 172800) return min ? `${h} h ${min} min` : `${h} h`;
    return `${Math.floor(s / 86400)} days`;
  };
  const tick = () => {
    const shown = find("#look-age");
    if (!shown) return;
    const said = shown.dataset.ageMs + shown.dataset.staleMs;
    if (said !== age.said || shown.dataset.rendered !== "yes") age = { said, since: performance.now() };
    shown.dataset.rendered = "yes";
    const ms = Number(shown.dataset.ageMs) + performance.now() - age.since;
    shown.textContent = lasted(ms);
    const stale = find("#stale");
    const isOld = ms > Number(shown.dataset.staleMs) && !find(".banner.served");
    stale.hidden = !isOld;
    if (isOld) stale.querySelector(".words").textContent = `The last finished look was ${lasted(ms)} ago. Everything below is that old.`;
  };

  // Live updates. A browser has few connections for one host, so a hidden tab gives its own back and catches up later.
  // The server shows a new look once its documents are made: until then the page asks again, for a while.
  // All tabs hear of a look at once, and the server answers few requests at a time: each waits a moment of its own.
  const apart = () => Math.random() * 700;
  let wanted = 0, tries = 0;
  const cycle = () => Number(find("#live")?.dataset.cycle || 0);
  const again = () => { if (wanted > cycle() && tries-- > 0) setTimeout(changed, 300 + apart()); };
  let events = null, wasLost = false, retry = 0, waits = 1000, pending = 0;
  const say = (state, words) => {
    const sign = find("#connection");
    if (sign) { sign.dataset.state = state; sign.querySelector(".words").textContent = words; }
    const lost = find("#lost");
    if (lost) {
      lost.hidden = state !== "lost";
      if (state === "lost") lost.querySelector(".words").textContent = "The agent does not answer. What is shown is from before; this page tries again by itself.";
    }
  };
  let state = ["waiting", "connecting"];
  const become = (...next) => { state = next; say(...next); };
  const changed = () => {
    if (pending || document.hidden) return;
    pending = setTimeout(() => { pending = 0; document.body.dispatchEvent(new CustomEvent("rackwise:changed", { bubbles: true })); }, 150);
  };
  const disconnect = () => { clearTimeout(retry); if (events) events.close(); events = null; };
  // A stream that ends is opened anew at once: only one that stays away is a loss.
  let losing = 0;
  const lose = () => {
    wasLost = true;
    if (!losing) losing = setTimeout(() => become("lost", "connection lost"), state[0] === "live" ? 5000 : 500);
    if (events && events.readyState === EventSource.CLOSED) {
      disconnect();
      retry = setTimeout(connect, waits);
      waits = Math.min(waits * 2, 15000);
    }
  };
  const connect = () => {
    if (events || document.hidden || root.dataset.live === "off") return;
    events = new EventSource("/api/v1/events");
    events.onopen = () => { clearTimeout(losing); losing = 0; waits = 1000; become("live", "live"); if (wasLost) changed(); wasLost = false; };
    events.onerror = lose;
    // The first event of a connection is the present look: a page that shows it already has nothing to fetch.
    events.addEventListener("look", (event) => {
      wanted = Number(JSON.parse(event.data).cycle) || 0;
      tries = 20;
      if (cycle() !== wanted) setTimeout(changed, apart());
    });
    for (const name of ["reset", "plan"]) events.addEventListener(name, changed);
  };
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) { hiding = setTimeout(() => { disconnect(); wasLost = true; }, 5000); } else { tick(); connect(); }
  });
  // A refresh keeps what the reader opened (morphIgnore in the page's head), typed or focused.
  document.addEventListener("htmx:after:swap", () => { say(...state); tick(); mark(); });
  document.addEventListener("htmx:finally:request", again);  // also of one that was refused

  // Theme: kept in a cookie, so that the server's next page has it from the start.
  const mark = () => {
    for (const link of document.querySelectorAll("[data-theme-to]")) {
      if (link.dataset.themeTo === (root.dataset.theme || "")) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  const dress = (theme) => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    document.cookie = theme ? `rackwise_theme=${theme};path=/;max-age=31536000;samesite=lax` : "rackwise_theme=;path=/;max-age=0;samesite=lax";
    mark();
  };

  const copy = async (button) => {
    const text = button.parentElement.querySelector("code, pre, textarea").textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const held = document.createElement("textarea");
      held.value = text;
      document.body.append(held);
      held.select();
      document.execCommand("copy");
      held.remove();
    }
    const words = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 1200);
  };
  document.addEventListener("click", (event) => {
    const theme = event.target.closest("[data-theme-to]");
    if (theme) { event.preventDefault(); dress(theme.dataset.themeTo); return; }
    const button = event.target.closest("[data-copy]");
    if (button) { copy(button); return; }
    const opener = event.target.closest("[data-opens]");
    if (opener) document.getElementById(opener.dataset.opens).showModal();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
    if (event.target.id === "keys-off") localStorage.setItem("rackwise-keys", event.target.checked ? "off" : "on");
  });

  // Keys: g and the letter of a view, / for the filter, c for colours, ? for the list. They can be switched off.
  let before = -Infinity;
  document.addEventListener("keydown", (event) => {
    const at = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || at.closest("input, select, textarea, dialog, [contenteditable]")) return;
    if (localStorage.getItem("rackwise-keys") === "off") return;
    const wasG = performance.now() - before < 1500;
    before = -Infinity;
    if (wasG) {
      const link = [...document.querySelectorAll(".sidebar a[data-key]")].find((one) => one.dataset.key === event.key);
      if (link) { event.preventDefault(); link.click(); }
    } else if (event.key === "g") { before = performance.now();
    } else if (event.key === "/") {
      const filter = find('input[type="search"]');
      if (filter) { event.preventDefault(); filter.focus(); filter.select(); }
    } else if (event.key === "c") {
      const order = ["", "light", "dark"];
      dress(order[(order.indexOf(root.dataset.theme || "") + 1) % 3]);
    } else if (event.key === "?") { event.preventDefault(); find("#keys").showModal(); }
  });
  const off = find("#keys-off");
  if (off) off.checked = localStorage.getItem("rackwise-keys") === "off";

  // On a phone the views are one strip that scrolls: the one that is shown is in sight.
  const centre = () => {
    const here = find(".sidebar a[aria-current]"), strip = find(".sidebar");
    if (here && strip.scrollWidth > strip.clientWidth) strip.scrollLeft = here.offsetLeft - (strip.clientWidth - here.offsetWidth) / 2;
  };
  window.addEventListener("resize", centre);
  centre();

  mark();
  tick();
  setInterval(tick, 1000);
  connect();
})();
