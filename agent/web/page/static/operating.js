// Of a proposal: the form keeps naming the plan that was seen, and says so when another is shown. Of the time line: the
// curve with a zoom. Without this file the views are whole.
(() => {
  "use strict";
  const compare = () => {
    const held = document.getElementById("approved-hash");
    const said = document.getElementById("plan-changed");
    if (held && said) said.hidden = held.value === said.dataset.planHash;
  };

  // The curve: local reads in per cent, and bytes read across racks; colours are those of the style sheet.
  let plot = null;
  const shown = (name) => {  // light-dark() is resolved by the browser alone
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const size = (rate) => {
    if (rate === null || rate === undefined) return "unknown";
    const units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
    let at = 0;
    while (rate >= 999.5 && at < units.length - 1) { rate /= 1000; at += 1; }
    return `${at && rate < 99.95 ? rate.toFixed(1) : Math.round(rate)} ${units[at]}`;
  };
  const columns = (rows) => {
    const sorted = [...rows].sort((a, b) => a.at_ms - b.at_ms);
    return [
      sorted.map((row) => row.at_ms / 1000),
      sorted.map((row) => (row.local_share === null ? null : 100 * row.local_share)),
      sorted.map((row) => row.cross_rack_bytes_per_s),
    ];
  };
  const draw = async () => {
    const place = document.getElementById("curve-plot");
    if (!place || typeof uPlot === "undefined") { plot = null; return; }
    let data;
    try {
      const answer = await fetch(place.dataset.curve);
      if (!answer.ok) return;
      data = columns(await answer.json());
    } catch { return; }
    if (plot && place.contains(plot.root)) { plot.setData(data, false); return; }
    const axis = { stroke: shown("--ink-2"), grid: { stroke: shown("--line"), width: 1 }, ticks: { stroke: shown("--line") } };
    plot = new uPlot({
      width: place.clientWidth, height: 240, tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
      scales: { y: { range: [0, 100] }, rate: { range: (_plot, _low, high) => [0, Math.max(10, 1.1 * high)] } },
      series: [
        { label: "UTC", value: (_plot, s) => (s === null || s === undefined ? "" : new Date(s * 1000).toISOString().slice(0, 16).replace("T", " ")) },
        { label: "local reads", scale: "y", stroke: shown("--accent"), width: 2, spanGaps: false, value: (_plot, v, _series, at) => (at === null || at === undefined ? "" : v === null || v === undefined ? "unknown" : `${v.toFixed(1)} %`) },
        { label: "read across racks", scale: "rate", stroke: shown("--move"), width: 1.5, dash: [6, 3], spanGaps: false, value: (_plot, v, _series, at) => (at === null || at === undefined ? "" : size(v)) },
      ],
      axes: [
        { ...axis, values: (_plot, all) => all.map((s) => new Date(s * 1000).toISOString().slice(11, all[1] - all[0] < 60 ? 19 : 16)) },
        { ...axis, scale: "y", values: (_plot, all) => all.map((v) => `${v} %`), size: 56 },
        { ...axis, scale: "rate", side: 1, grid: { show: false }, values: (_plot, all) => all.map(size), size: 76 },
      ],
    }, data, place);
  };
  window.addEventListener("resize", () => {
    const place = document.getElementById("curve-plot");
    if (plot && place) plot.setSize({ width: place.clientWidth, height: 240 });
  });
  document.addEventListener("htmx:after:swap", () => { compare(); draw(); });
  compare();
  draw();
})();
