// Of a proposal: the form keeps naming the plan that was seen, and says so when another is shown. Of the time line: the
// curve as a plot. Without this file the views are whole.
(() => {
  "use strict";
  const compare = () => {
    const held = document.getElementById("approved-hash");
    const said = document.getElementById("plan-changed");
    if (held && said) said.hidden = held.value === said.dataset.planHash;
  };
  document.addEventListener("htmx:after:swap", compare);
  compare();
})();
