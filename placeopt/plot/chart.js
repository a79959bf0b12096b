// Charts of a front in SVG: planes whose colour is a third goal, and a line for every plan.
//
// A front is what placeopt/plot/front_data.py writes, and what is chosen: `kept` (a flag for each
// plan), `chosen` and `knee` (a plan's number or null), `pins` ({A: number, B: number}).
(function (placeopt) {
  "use strict";
  var NS = "http://www.w3.org/2000/svg";
  var SHADES = 12; // colours of the scale: classes shade-0, the best, to shade-11
  var NEAR = 26; // pixels from a plan within which it is pointed at

  // -- text and elements ------------------------------------------------------------------------

  function element(name, parent, attributes, text) {
    var made = document.createElement(name);
    return finish(made, parent, attributes, text);
  }
  function svg(name, parent, attributes, text) {
    return finish(document.createElementNS(NS, name), parent, attributes, text);
  }
  function finish(made, parent, attributes, text) {
    Object.keys(attributes || {}).forEach(function (key) {
      if (attributes[key] !== null) { made.setAttribute(key, attributes[key]); }
    });
    if (text !== undefined) { made.textContent = text; }
    if (parent) { parent.appendChild(made); }
    return made;
  }
  // A number for people: thousands apart, five significant digits.
  function number(value) {
    var size = Math.abs(value);
    if (size >= 1e15) { return value.toPrecision(5); }
    if (Number.isInteger(value)) { return value.toLocaleString("en"); }
    if (size >= 1e4) { return Math.round(value).toLocaleString("en"); }
    return String(Number(value.toPrecision(5)));
  }
  // As few digits as a rate deserves.
  function rounded(value) { return Number(value.toPrecision(3)); }
  function told(goal, value) { return number(value * goal.factor) + goal.suffix; }
  function plans(count) { return count.toLocaleString("en") + (count === 1 ? " plan" : " plans"); }

  function proof(front, n) {
    var gap = front.gaps[n];
    if (gap === null) { return front.statuses[n]; }
    // Rounded up, as in placeopt/core/numbers.py: no gap is understated.
    var percent = Math.max(1, Math.ceil(gap * 1e4 - 1e-9)) / 100;
    return front.statuses[n] + " (gap " + percent.toFixed(2) + "%)";
  }
  function origin(front, n) { return front.origins[front.origin_of[n]]; }
  // What pointing at a plan says, line by line.
  function tell(front, n) {
    return ["plan " + n].concat(front.goals.map(function (goal, k) {
      return goal.short + " " + told(goal, front.values[n][k]);
    }), [proof(front, n) + ", " + origin(front, n)]);
  }
  // The goals of the first plane: those that vary come first.
  function axesOf(front) {
    var first = varying(front.goals), order = first.concat(
      front.goals.map(function (_, k) { return k; }).filter(function (k) {
        return first.indexOf(k) < 0;
      })
    );
    return { x: order[0], y: order[1], colour: first.length > 2 ? order[2] : null };
  }
  function varies(goal) { return goal.best !== goal.worst; }
  // Numbers of the goals that vary, and pairs of them: all of three, the first six of more.
  function varying(goals) {
    return goals.map(function (_, k) { return k; }).filter(function (k) {
      return varies(goals[k]);
    });
  }
  function pairs(goals) {
    var found = [];
    varying(goals).forEach(function (a) {
      varying(goals).forEach(function (b) { if (a < b) { found.push([a, b]); } });
    });
    return found.slice(0, 6);
  }

  // -- scales -----------------------------------------------------------------------------------

  // Round numbers between two ends, about so many; whole numbers alone where values are whole.
  function ticks(low, high, count, whole) {
    var rough = Math.max((high - low) / Math.max(1, count), whole ? 1 : 0);
    var power = Math.pow(10, Math.floor(Math.log10(rough)));
    var step = power * [1, 2, 5, 10].find(function (times) { return times * power >= rough; });
    var digits = Math.min(20, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
    var found = [];
    for (var k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      found.push({ at: k * step, text: short(k * step, digits, step) });
    }
    return found;
  }
  function short(value, digits, step) {
    if (Math.abs(value) < step / 2) { return "0"; }
    if (Math.abs(value) >= 1e7 || (value && step < 1e-6)) {
      return String(Number(value.toPrecision(4)));
    }
    return value.toLocaleString("en", { maximumFractionDigits: digits });
  }
  function range(values) {
    var low = Math.min.apply(null, values), high = Math.max.apply(null, values);
    var room = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * 0.05;
    return [low - room, high + room];
  }
  function shareOf(goal, value) {
    return goal.worst === goal.best ? 0 : (value - goal.best) / (goal.worst - goal.best);
  }
  function shade(goal, value) {
    return Math.max(0, Math.min(SHADES - 1, Math.floor(shareOf(goal, value) * SHADES)));
  }
  // The class of a plan's colour, by a goal or, where `colour` is null, by what found it.
  function classOf(front, colour, n) {
    if (colour === null) { return "by-" + (front.method_of[n] % 8); }
    return "shade-" + shade(front.goals[colour], front.values[n][colour]);
  }

  // -- marks ------------------------------------------------------------------------------------

  function mark(status, x, y, r) {
    if (status === "optimal") {
      return "M" + (x - r) + " " + (y - r) + "h" + 2 * r + "v" + 2 * r + "h" + -2 * r + "z";
    }
    if (status === "bounded") {
      var d = r * 1.3;
      return "M" + x + " " + (y - d) + "l" + d + " " + d + "l" + -d + " " + d +
        "l" + -d + " " + -d + "z";
    }
    return "M" + (x - r) + " " + y + "a" + r + " " + r + " 0 1 0 " + 2 * r + " 0a" +
      r + " " + r + " 0 1 0 " + -2 * r + " 0z";
  }
  // Paths by class: a few elements for thousands of marks.
  function grouped(parent, list) {
    var found = {};
    list.forEach(function (item) {
      (found[item[0]] = found[item[0]] || []).push(item[1]);
    });
    Object.keys(found).forEach(function (name) {
      svg("path", parent, { class: name, d: found[name].join("") });
    });
  }
  function rings(front) {
    var found = [["knee", front.knee, 9, ""]];
    if (front.chosen !== null) { found.push(["chosen", front.chosen, 11, ""]); }
    ["A", "B"].forEach(function (name) {
      if (front.pins && front.pins[name] !== undefined) {
        found.push(["pin", front.pins[name], 13, name]);
      }
    });
    return found.filter(function (ring) { return ring[1] !== undefined && ring[1] !== null; });
  }

  // -- a plane ----------------------------------------------------------------------------------

  // options: axes {x, y, colour}, height, label (for those who cannot see it), tell(n) -> lines,
  // choose(n), fit() -> whether only the plans within the limits set the scales.
  function plane(place, front, options) {
    var axes = options.axes, size = null, cursor = null, seen = [];
    place.classList.add("plane");
    place.tabIndex = 0;
    place.setAttribute("role", "application");
    place.setAttribute("aria-label", options.label);
    var tip = element("div", null, { class: "tip", "aria-hidden": "true", hidden: "" });
    var said = element("div", null, { class: "unseen", "aria-live": "polite" });

    function layout() {
      var shown = front.values.map(function (row, n) { return n; }).filter(function (n) {
        return !(options.fit && options.fit()) || front.kept[n];
      });
      if (!shown.length) { shown = front.values.map(function (row, n) { return n; }); }
      var width = Math.max(200, place.clientWidth), height = options.height(width);
      var made = { width: width, height: height, right: width - 12, top: 30, bottom: height - 46 };
      ["x", "y"].forEach(function (axis) {
        var goal = front.goals[axes[axis]];
        var column = shown.map(function (n) { return front.values[n][axes[axis]] * goal.factor; });
        made[axis] = range(column);
        made[axis].whole = column.every(Number.isInteger);
      });
      made.yTicks = ticks(made.y[0], made.y[1], Math.max(2, height / 60), made.y.whole);
      var longest = Math.max.apply(null, made.yTicks.map(function (t) { return t.text.length; }));
      made.left = 12 + 7.2 * longest;
      var across = Math.max(2, (width - made.left) / 90);
      made.xTicks = ticks(made.x[0], made.x[1], across, made.x.whole);
      return made;
    }
    function xOf(value) {
      return size.left + (value - size.x[0]) / (size.x[1] - size.x[0]) * (size.right - size.left);
    }
    function yOf(value) {
      return size.bottom - (value - size.y[0]) / (size.y[1] - size.y[0]) * (size.bottom - size.top);
    }
    function at(row) {
      return [
        Number(xOf(row[axes.x] * front.goals[axes.x].factor).toFixed(1)),
        Number(yOf(row[axes.y] * front.goals[axes.y].factor).toFixed(1))
      ];
    }
    function inside(spot) {
      return spot[0] >= size.left - 1 && spot[0] <= size.right + 1 &&
        spot[1] >= size.top - 1 && spot[1] <= size.bottom + 1;
    }
    function draw() {
      size = layout();
      seen = front.values.map(at);
      place.textContent = "";
      var root = svg("svg", place, {
        width: size.width, height: size.height, "aria-hidden": "true", focusable: "false",
        viewBox: "0 0 " + size.width + " " + size.height
      });
      grid(root);
      var crosses = (front.bounds || []).map(at).filter(inside).map(function (spot) {
        return "M" + (spot[0] - 4) + " " + (spot[1] - 4) + "l8 8m0-8l-8 8";
      });
      if (crosses.length) { svg("path", root, { class: "bound", d: crosses.join("") }); }
      grouped(root, marks());
      rings(front).forEach(function (ring) { circle(root, ring); });
      place.appendChild(tip);
      place.appendChild(said);
    }
    function marks() {
      var r = options.small ? 3 : 4.5;
      var list = seen.map(function (spot, n) {
        var name = front.kept[n] ? classOf(front, axes.colour, n) : "beyond";
        return inside(spot) ? [name, mark(front.statuses[n], spot[0], spot[1], r)] : null;
      }).filter(Boolean);
      // What is beyond the limits lies below the rest.
      return list.filter(function (i) { return i[0] === "beyond"; })
        .concat(list.filter(function (i) { return i[0] !== "beyond"; }));
    }
    function circle(root, ring) {
      var spot = seen[ring[1]];
      if (!spot || !inside(spot)) { return; }
      svg("circle", root, { class: ring[0], cx: spot[0], cy: spot[1], r: ring[2] });
      if (ring[3]) {
        var text = { class: "pin-name", x: spot[0] + 14, y: spot[1] - 8 };
        svg("text", root, text, ring[3]);
      }
    }
    function grid(root) {
      var lines = svg("g", root, { class: "grid-lines" });
      var middle = (size.left + size.right) / 2;
      size.xTicks.forEach(function (tick) {
        var x = xOf(tick.at);
        svg("path", lines, { d: "M" + x + " " + size.top + "V" + size.bottom });
        var anchor = x < size.left + 14 ? "start" : x > size.right - 14 ? "end" : "middle";
        svg("text", root, { x: x, y: size.bottom + 17, "text-anchor": anchor }, tick.text);
      });
      size.yTicks.forEach(function (tick) {
        var y = yOf(tick.at);
        svg("path", lines, { d: "M" + size.left + " " + y + "H" + size.right });
        svg("text", root, { x: size.left - 6, y: y + 4, "text-anchor": "end" }, tick.text);
      });
      var title = { class: "axis", x: middle, y: size.height - 6, "text-anchor": "middle" };
      svg("text", root, title, front.goals[axes.x].label);
      svg("text", root, { class: "axis", x: 8, y: 16 }, front.goals[axes.y].label);
    }

    // -- pointing, clicking, keys

    function nearest(x, y) {
      var best = null, least = NEAR * NEAR;
      seen.forEach(function (spot, n) {
        if (!inside(spot)) { return; }
        var far = Math.pow(spot[0] - x, 2) + Math.pow(spot[1] - y, 2);
        if (far < least - (front.kept[n] ? 0 : 100)) { least = far; best = n; }
      });
      return best;
    }
    function point(n) {
      cursor = n;
      tip.hidden = n === null;
      if (n === null) { return; }
      tip.textContent = "";
      options.tell(n).forEach(function (line, k) { element(k ? "div" : "strong", tip, {}, line); });
      var spot = seen[n], room = size.width - tip.offsetWidth - 4;
      tip.style.left = Math.max(4, Math.min(room, spot[0] + 14)) + "px";
      var above = spot[1] - tip.offsetHeight - 12;
      tip.style.top = (above > 0 ? above : spot[1] + 14) + "px";
    }
    function local(event) {
      var box = place.getBoundingClientRect();
      return nearest(event.clientX - box.left, event.clientY - box.top);
    }
    function step(axis, way) {
      var from = cursor !== null ? cursor : front.chosen !== null ? front.chosen : front.knee;
      var order = front.values.map(function (row, n) { return n; }).filter(function (n) {
        return front.kept[n] && inside(seen[n]);
      });
      var of = axis === "x" ? 0 : 1, sign = axis === "x" ? 1 : -1;
      order.sort(function (a, b) { return sign * (seen[a][of] - seen[b][of]) || a - b; });
      if (way === -Infinity || way === Infinity) { return order[way < 0 ? 0 : order.length - 1]; }
      var place = order.indexOf(from);
      return order[place < 0 ? 0 : Math.max(0, Math.min(order.length - 1, place + way))];
    }
    function take(n) {
      if (n === null || n === undefined) { return; }
      if (options.choose) { options.choose(n); }
      point(n);
      said.textContent = options.tell(n).join(", ");
    }
    var keys = {
      ArrowRight: ["x", 1], ArrowLeft: ["x", -1], ArrowUp: ["y", 1], ArrowDown: ["y", -1],
      Home: ["x", -Infinity], End: ["x", Infinity]
    };
    place.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { point(null); return; }
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) { return; }
      event.preventDefault();
      take(step(keys[event.key][0], keys[event.key][1]));
    });
    place.addEventListener("pointermove", function (event) {
      if (event.pointerType !== "touch") { point(local(event)); }
    });
    place.addEventListener("pointerleave", function () { point(null); });
    place.addEventListener("blur", function () { point(null); });
    place.addEventListener("click", function (event) { take(local(event)); });
    return resizing(place, { draw: draw, axes: axes, spots: function () { return seen; } });
  }

  // -- a line for every plan --------------------------------------------------------------------

  function lines(place, front, options) {
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", options.label);

    function draw() {
      var columns = varying(front.goals), count = columns.length;
      var goals = columns.map(function (k) { return front.goals[k]; });
      var width = Math.max(200, place.clientWidth);
      var side = Math.min(90, width / (2 * count)), top = 26, bottom = 250;
      var narrow = (width - 2 * side) / Math.max(1, count - 1);
      function x(k) { return Number((side + k * narrow).toFixed(1)); }
      function y(k, value) {
        return Number((bottom - shareOf(goals[k], value) * (bottom - top)).toFixed(1));
      }
      place.textContent = "";
      var root = svg("svg", place, {
        width: width, height: 320, "aria-hidden": "true", focusable: "false",
        viewBox: "0 0 " + width + " 320", class: "lines"
      });
      function line(n) {
        return "M" + goals.map(function (goal, k) {
          return x(k) + " " + y(k, front.values[n][columns[k]]);
        }).join("L");
      }
      var all = front.values.map(function (row, n) {
        return [front.kept[n] ? classOf(front, options.colour(), n) : "beyond", line(n)];
      });
      grouped(root, all.filter(function (item) { return item[0] === "beyond"; }));
      grouped(root, all.filter(function (item) { return item[0] !== "beyond"; }));
      rings(front).forEach(function (ring) {
        svg("path", root, { class: ring[0], d: line(ring[1]) });
      });
      goals.forEach(function (goal, k) {
        svg("path", root, { class: "rule", d: "M" + x(k) + " " + top + "V" + bottom });
        var middle = { x: x(k), "text-anchor": "middle" };
        svg("text", root, Object.assign({ y: top - 9 }, middle), told(goal, goal.worst));
        svg("text", root, Object.assign({ y: bottom + 17 }, middle), told(goal, goal.best));
        wrapped(goal.label, narrow || width).forEach(function (text, row) {
          var under = { y: bottom + 36 + 15 * row, class: "axis" };
          svg("text", root, Object.assign(under, middle), text);
        });
      });
    }
    return resizing(place, { draw: draw });
  }
  function wrapped(text, width) {
    var rows = [""];
    text.split(" ").forEach(function (word) {
      var row = rows[rows.length - 1];
      if (row && (row.length + word.length + 1) * 7 > width) { rows.push(word); }
      else { rows[rows.length - 1] = row ? row + " " + word : word; }
    });
    return rows.slice(0, 3);
  }

  // A line for every plan, and a small plane of every pair of goals that vary, if more than two
  // do; each a figure of `place`.
  // options: axes.colour, choose(n), fit().
  function gallery(place, front, options) {
    if (varying(front.goals).length < 3) { return []; }
    var all = element("figure", place, { class: "whole" }), drawn = element("div", all);
    element("figcaption", all, {}, "Every line is a plan; the best value is at the lower end.");
    var charts = [lines(drawn, front, {
      label: "A line for every plan across all goals.",
      colour: function () { return options.axes.colour; }
    })];
    pairs(front.goals).forEach(function (pair) {
      var figure = element("figure", place, { class: "third" });
      var caption = front.goals[pair[1]].short + " against " + front.goals[pair[0]].short;
      var spot = element("div", figure);
      element("figcaption", figure, {}, caption + ".");
      charts.push(plane(spot, front, {
        axes: Object.create(options.axes, { x: { value: pair[0] }, y: { value: pair[1] } }),
        small: true, label: "Chart of " + caption + ". The arrow keys move from plan to plan.",
        height: function () { return 290; }, choose: options.choose, fit: options.fit,
        tell: function (n) { return tell(front, n); }
      }));
    });
    return charts;
  }

  // -- what the colours mean --------------------------------------------------------------------

  function legend(place, front, colour) {
    place.textContent = "";
    if (colour !== null) {
      var goal = front.goals[colour];
      var scale = element("span", place, { class: "scale" });
      element("span", scale, {}, goal.label + ": " + told(goal, goal.best));
      var bar = svg("svg", scale, {
        width: 120, height: 12, viewBox: "0 0 12 1", preserveAspectRatio: "none",
        "aria-hidden": "true"
      });
      for (var k = 0; k < SHADES; k += 1) {
        svg("path", bar, { class: "bar shade-" + k, d: "M" + k + " 0h1.1v1h-1.1z" });
      }
      element("span", scale, {}, told(goal, goal.worst));
    } else {
      front.methods.forEach(function (name, k) {
        entry(place, "by-" + (k % 8), mark("heuristic", 7, 7, 5), name);
      });
    }
    shapes(front).forEach(function (status) {
      entry(place, "shape", mark(status, 7, 7, 5), status);
    });
    if ((front.bounds || []).length) {
      entry(place, "bound", "M3 3l8 8m0-8l-8 8", front.bound_name + " (proven)");
    }
    entry(place, "knee", mark("heuristic", 7, 7, 5), "knee");
    if (front.chosen !== null) { entry(place, "chosen", mark("heuristic", 7, 7, 5), "chosen"); }
  }
  function shapes(front) {
    var found = ["optimal", "bounded", "heuristic"].filter(function (status) {
      return front.statuses.indexOf(status) >= 0;
    });
    return found.length > 1 ? found : [];
  }
  function entry(place, name, path, text) {
    var row = element("span", place, { class: "entry" });
    var drawn = svg("svg", row, { width: 14, height: 14, "aria-hidden": "true" });
    svg("path", drawn, { class: name, d: path });
    element("span", row, {}, text);
  }

  function resizing(place, chart) {
    var width = null;
    new ResizeObserver(function () {
      if (place.clientWidth !== width) { width = place.clientWidth; chart.draw(); }
    }).observe(place);
    return chart;
  }

  Object.assign(placeopt, {
    element: element, number: number, told: told, rounded: rounded, plans: plans, plane: plane, lines: lines,
    gallery: gallery, legend: legend, proof: proof, origin: origin, tell: tell, axesOf: axesOf, pairs: pairs,
    varying: varying
  });
})(window.placeopt = window.placeopt || {});
