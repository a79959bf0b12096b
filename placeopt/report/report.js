// Charts follow the colours of the page; without WebGL the 3-D view makes room for the others.
(function () {
  "use strict";
  if (!window.Plotly) { return; }
  var probe = document.createElement("canvas");
  var webgl = !!(probe.getContext("webgl2") || probe.getContext("webgl"));
  document.querySelectorAll("figure[data-webgl]").forEach(function (figure) {
    if (webgl) { return; }
    figure.hidden = true;
    document.querySelectorAll(".charts .half:not([hidden])").forEach(function (other) {
      other.className = "whole";
    });
  });
  function paint(dark) {
    var ink = dark ? "#e7ebf0" : "#1c2430";
    var line = dark ? "#333d4a" : "#dfe4ea";
    var paper = dark ? "#1b222c" : "#ffffff";
    document.querySelectorAll("figure.chart .js-plotly-plot").forEach(function (plot) {
      var change = { "paper_bgcolor": paper, "plot_bgcolor": paper, "font.color": ink };
      change["hoverlabel.bgcolor"] = paper;
      change["hoverlabel.font.color"] = ink;
      Object.keys(plot._fullLayout).forEach(function (key) {
        if (/^[xy]axis[0-9]*$/.test(key)) {
          ["gridcolor", "zerolinecolor", "linecolor"].forEach(function (part) {
            change[key + "." + part] = line;
          });
        }
        if (/^scene[0-9]*$/.test(key)) {
          ["xaxis", "yaxis", "zaxis"].forEach(function (axis) {
            change[key + "." + axis + ".gridcolor"] = line;
            change[key + "." + axis + ".color"] = ink;
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
