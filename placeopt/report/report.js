// The charts of a report: a plane of the first goals, every plan across all goals, every pair.
(function (placeopt) {
  "use strict";
  var front = JSON.parse(document.getElementById("front-data").textContent);
  var charts = document.getElementById("charts");
  front.kept = front.values.map(function () { return true; });
  if (front.goals.length < 2) { return; }
  var axes = placeopt.axesOf(front);
  var figure = placeopt.element("figure", charts, { class: "whole" });
  var place = placeopt.element("div", figure);
  placeopt.legend(placeopt.element("figcaption", figure, { class: "legend" }), front, axes.colour);
  placeopt.plane(place, front, {
    axes: axes, tell: function (n) { return placeopt.tell(front, n); },
    height: function (width) { return Math.max(300, Math.min(480, width * 0.5)); },
    label: "Chart of " + front.goals[axes.y].short + " against " + front.goals[axes.x].short +
      ". The arrow keys move from plan to plan."
  });
  placeopt.gallery(charts, front, { axes: axes });
})(window.placeopt);
