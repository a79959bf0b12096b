"""The look of a report: one page for screens of any width, dark or light, and for paper."""

from __future__ import annotations

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="placeopt {version}">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style></head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><p class="eyebrow">placeopt report · {problem}</p><h1>{heading}</h1><p class="lead">{question}</p></header>
<nav aria-label="Sections">{links}</nav>
<main id="content">
{body}
</main>
<footer>{footer}</footer>
{script}
</body></html>
"""

#: Nothing is loaded from anywhere; plotly compiles its WebGL shaders, hence unsafe-eval.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)

STYLE = """
:root { --ink:#1c2430; --soft:#566171; --line:#dfe4ea; --paper:#ffffff; --ground:#f4f6f9; --accent:#0b5fa5; --bar:#8fbfe6; --over:#e07a5f;
 --good:#0f6b4a; --goodbg:#dff3ea; --warn:#7a4a00; --warnbg:#fdeecb; --bad:#98222a; --badbg:#fbe1e1; --plainbg:#e9edf2; }
@media (prefers-color-scheme: dark) { :root { --ink:#e7ebf0; --soft:#a9b4c2; --line:#333d4a; --paper:#1b222c; --ground:#12171e; --accent:#7cc0ff;
 --bar:#2f6da3; --over:#b8563d; --good:#8fe0bd; --goodbg:#143a2c; --warn:#ffd68a; --warnbg:#40300c; --bad:#ffb3b3; --badbg:#4a1c20;
  --plainbg:#2a333f; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
header, nav, main, footer { max-width: 1160px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 36px; } h1 { font-size: 32px; line-height: 1.2; margin: 2px 0 6px; overflow-wrap: anywhere; }
.eyebrow { margin: 0; color: var(--accent); font-weight: 600; letter-spacing: .02em; font-size: 14px; }
.lead { margin: 0 0 14px; color: var(--soft); font-size: 17px; }
nav { display: flex; flex-wrap: wrap; gap: 4px 18px; padding-bottom: 18px; font-size: 14.5px; }
a { color: var(--accent); } nav a { text-decoration: none; padding: 4px 0; } nav a:hover { text-decoration: underline; }
.skip { position: absolute; left: -9999px; } .skip:focus { left: 8px; top: 8px; background: var(--paper); padding: 6px 12px; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 22px 26px 24px; margin: 0 0 20px; }
h2 { font-size: 21px; margin: 0 0 10px; } h3 { font-size: 16.5px; margin: 24px 0 6px; }
p { margin: 6px 0; max-width: 78ch; } ul { margin: 6px 0; padding-left: 22px; max-width: 84ch; } li { margin: 3px 0; overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: 14.5px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 4px 0 16px; }
.tile { border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; } .tile dt { color: var(--soft); font-size: 13.5px; }
.tile dd { margin: 0; font-size: 23px; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tile dd.hint { font-size: 13px; font-weight: 400; color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); gap: 8px 24px; margin: 10px 0; }
.facts .whole-row { grid-column: 1 / -1; }
.facts dt { color: var(--soft); font-size: 13.5px; } .facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 12px 0 4px; } .scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: 14.5px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0 0 6px; }
th, td { text-align: left; padding: 6px 16px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word;
  max-width: 46ch; }
thead th { color: var(--soft); font-weight: 600; font-size: 13.5px; vertical-align: bottom; } tbody th { font-weight: 500; }
  .n { text-align: right; }
tr > :last-child { padding-right: 0; } .none { color: var(--soft); }
.bar { display: inline-block; position: relative; width: 108px; height: 19px; background: var(--plainbg); border-radius: 4px;
  overflow: hidden; vertical-align: middle; }
.bar i { position: absolute; inset: 0 auto 0 0; background: var(--bar); } .bar.over i { background: var(--over); }
.bar b { position: absolute; inset: 0; padding: 0 7px; font-weight: 500; font-size: 12.5px; line-height: 19px; text-align: right; }
.mark { display: inline-block; padding: 0 9px; border-radius: 99px; font-size: 13px; line-height: 1.6; background: var(--plainbg); }
.good { background: var(--goodbg); color: var(--good); } .warn { background: var(--warnbg); color: var(--warn); }
  .bad { background: var(--badbg); color: var(--bad); }
.charts { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 14px; margin: 12px 0; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; min-width: 0; overflow: hidden; } figcaption { padding: 8px 12px;
  font-size: 14px; color: var(--soft); }
.half { grid-column: span 3; } .third { grid-column: span 2; } .whole { grid-column: span 6; }
.drawing { background: #fff; color: #222; overflow-x: auto; } .drawing > div { min-width: 720px; } .drawing img { display: block;
  max-width: 100%; height: auto; margin: auto; }
details { margin: 12px 0; } summary { cursor: pointer; color: var(--accent); padding: 4px 0; }
code { font: 13.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { background: var(--ground); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; overflow-x: auto; margin: 8px 0; }
footer { color: var(--soft); font-size: 13.5px; padding-bottom: 40px; }
@media (max-width: 860px) { .half, .third { grid-column: span 6; } }
@media (max-width: 560px) { header, nav, main, footer { padding-left: 12px; padding-right: 12px; } section { padding: 16px 14px; }
  h1 { font-size: 25px; }
 .tile dd { font-size: 19px; } .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media print { :root { --ink:#000; --soft:#444; --line:#ccc; --paper:#fff; --ground:#fff; --accent:#000; --bar:#b9d3ea; --plainbg:#eee; }
 body { font-size: 11pt; } nav, .skip { display: none; } section { border: 0; padding: 0 0 10px; } header, main, footer { max-width: none;
  padding: 0; }
 .scroll { overflow: visible; } figure, tr, .tile { break-inside: avoid; } h2, h3, caption { break-after: avoid; }
  .modebar { display: none !important; }
 * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""

#: Charts follow the colours of the page; without WebGL the 3-D view makes room for the others.
SCRIPT = """<script>
(function () {
  "use strict";
  if (!window.Plotly) { return; }
  var probe = document.createElement("canvas");
  var webgl = !!(probe.getContext("webgl2") || probe.getContext("webgl"));
  document.querySelectorAll("figure[data-webgl]").forEach(function (figure) {
    if (!webgl) { figure.hidden = true;
  document.querySelectorAll(".charts .half:not([hidden])").forEach(function (f) { f.className = "whole"; }); }
  });
  function paint(dark) {
    var ink = dark ? "#e7ebf0" : "#1c2430", line = dark ? "#333d4a" : "#dfe4ea", paper = dark ? "#1b222c" : "#ffffff";
    document.querySelectorAll("figure.chart .js-plotly-plot").forEach(function (plot) {
      var change = { "paper_bgcolor": paper, "plot_bgcolor": paper, "font.color": ink };
      change["hoverlabel.bgcolor"] = paper; change["hoverlabel.font.color"] = ink;
      Object.keys(plot._fullLayout).forEach(function (key) {
        if (/^[xy]axis[0-9]*$/.test(key)) { change[key + ".gridcolor"] = line; change[key + ".zerolinecolor"] = line;
  change[key + ".linecolor"] = line; }
        if (/^scene[0-9]*$/.test(key)) {
          ["xaxis", "yaxis", "zaxis"].forEach(function (axis) {
            change[key + "." + axis + ".gridcolor"] = line; change[key + "." + axis + ".color"] = ink;
  change[key + "." + axis + ".backgroundcolor"] = paper;
          });
        }
      });
      Plotly.relayout(plot, change);
    });
  }
  var scheme = window.matchMedia("(prefers-color-scheme: dark)");
  paint(scheme.matches);
  scheme.addEventListener("change", function (event) { paint(event.matches); });
  window.addEventListener("beforeprint", function () { paint(false); });
  window.addEventListener("afterprint", function () { paint(scheme.matches); });
})();
</script>"""
