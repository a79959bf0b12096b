// Limits of every goal filter the points of all charts; a click on a point shows its plan.
(function () {
  "use strict";
  var front = JSON.parse(document.getElementById("front-data").textContent);
  var plots = Array.prototype.slice.call(document.querySelectorAll(".js-plotly-plot"));
  var rows = Array.prototype.slice.call(document.querySelectorAll(".limit"));
  var DIMMED = "rgba(150,150,150,0.12)";
  var CHOSEN = "#6A3D9A";
  var STEPS = 1000;
  // Of each goal the intervals that are kept; null: all of them.
  var kept = front.goals.map(function () { return null; });
  var own = false; // the change of a chart that is under way is ours

  // -- values -----------------------------------------------------------------------------------

  function within(value, k) {
    var room = 1e-9 * Math.abs(front.goals[k].worst - front.goals[k].best);
    return kept[k] === null || kept[k].some(function (interval) {
      return value >= interval[0] - room && value <= interval[1] + room;
    });
  }
  function isKept(values) { return values.every(within); }
  function show(value) { return String(Number(value.toPrecision(6))); }
  function interval(a, b) { return a < b ? [a, b] : [b, a]; }

  // -- charts -----------------------------------------------------------------------------------

  var pending = false;
  function refresh() {
    if (pending) { return; }
    pending = true;
    window.requestAnimationFrame(function () { pending = false; draw(); });
  }
  function draw() {
    var marks = front.values.map(isKept);
    var count = marks.filter(Boolean).length;
    var all = marks.length.toLocaleString("en");
    var some = count === marks.length ? "all " : count.toLocaleString("en") + " of ";
    document.getElementById("kept").textContent = some + all + " points";
    plots.forEach(function (plot) {
      plot.data.forEach(function (trace, k) {
        if (!trace.customdata) { return; }
        var colour = plot.colours[k];
        var colours = trace.customdata.map(function (n) { return marks[n] ? colour : DIMMED; });
        Plotly.restyle(plot, { "marker.color": [colours] }, [k]);
      });
    });
  }
  function brush() {
    plots.filter(isParallel).forEach(function (plot) {
      var change = {};
      kept.forEach(function (intervals, k) {
        var one = intervals && intervals.length === 1 ? intervals[0] : intervals;
        change["dimensions[" + k + "].constraintrange"] = intervals === null ? null : [one];
      });
      own = true;
      Plotly.restyle(plot, change).then(done, done);
    });
  }
  function done() { own = false; }
  function isParallel(plot) { return plot.data.length > 0 && plot.data[0].type === "parcoords"; }
  function read(plot) {
    plot.data[0].dimensions.forEach(function (dimension, k) {
      var range = dimension.constraintrange;
      if (!range || !range.length) { kept[k] = null; return; }
      kept[k] = Array.isArray(range[0]) ? range : [range];
    });
    rows.forEach(fill);
    refresh();
  }

  // -- limits -----------------------------------------------------------------------------------

  function goalOf(row) { return Number(row.dataset.goal); }
  function limitOf(k) {
    var goal = front.goals[k];
    if (kept[k] === null) { return goal.worst; }
    var ends = [].concat.apply([], kept[k]);
    return goal.sign > 0 ? Math.max.apply(null, ends) : Math.min.apply(null, ends);
  }
  function fill(row) {
    var k = goalOf(row), goal = front.goals[k], limit = limitOf(k);
    var share = goal.worst === goal.best ? 1 : (limit - goal.best) / (goal.worst - goal.best);
    row.querySelector("[type=range]").value = Math.round(STEPS * Math.min(1, Math.max(0, share)));
    row.querySelector("[type=range]").setAttribute("aria-valuetext", show(limit));
    row.querySelector("[type=number]").value = show(limit);
    row.classList.toggle("set", kept[k] !== null);
  }
  function limit(k, value) {
    var goal = front.goals[k];
    var loose = !isFinite(value) || goal.sign * (value - goal.worst) >= 0;
    // The best value is always kept, however tight the limit.
    var tight = goal.sign * (value - goal.best) < 0 ? goal.best : value;
    kept[k] = loose ? null : [interval(goal.best, tight)];
    brush();
    refresh();
  }
  rows.forEach(function (row) {
    var k = goalOf(row), goal = front.goals[k];
    row.querySelector("[type=range]").addEventListener("input", function (event) {
      var share = Number(event.target.value) / STEPS;
      limit(k, share >= 1 ? NaN : goal.best + share * (goal.worst - goal.best));
      row.querySelector("[type=number]").value = show(limitOf(k));
      row.classList.toggle("set", kept[k] !== null);
    });
    row.querySelector("[type=number]").addEventListener("change", function (event) {
      limit(k, event.target.value === "" ? NaN : Number(event.target.value));
      fill(row);
    });
    fill(row);
  });
  document.getElementById("reset").addEventListener("click", function () {
    kept = kept.map(function () { return null; });
    rows.forEach(fill);
    brush();
    refresh();
  });

  // -- the plan of a point ----------------------------------------------------------------------

  function add(parent, name, text) {
    var element = document.createElement(name);
    if (text !== undefined) { element.textContent = text; }
    return parent.appendChild(element);
  }
  function list(parent, pairs) {
    var table = add(parent, "table");
    pairs.forEach(function (pair) {
      var row = add(table, "tr");
      add(row, "th", pair[0]);
      add(row, "td", pair[1]);
    });
  }
  function choose(n) {
    if (!(n >= 0 && n < front.values.length)) { return; }
    document.getElementById("point").value = n;
    var panel = document.getElementById("plan"), place = panel.querySelector("div");
    panel.hidden = false;
    panel.scrollTop = 0;
    place.textContent = "";
    add(place, "h2", "Point " + n);
    var values = front.goals.map(function (goal, k) {
      return [goal.label, show(front.values[n][k])];
    });
    list(place, values.concat([["proof", front.statuses[n]], ["found by", front.origins[n]]]));
    var known = front.plans[n];
    if (!known) {
      add(place, "p", front.without.replace("{n}", n));
    } else {
      if (known.facts.length) { list(place, known.facts); }
      var details = add(place, "details");
      add(details, "summary", "The whole plan");
      add(details, "pre", JSON.stringify(known.plan, null, 1));
      details.open = known.facts.length === 0;
    }
    mark(n);
  }
  function mark(n) {
    plots.forEach(function (plot) {
      var columns = plot.layout.meta && plot.layout.meta.columns;
      if (!columns) { return; }
      var at = {};
      ["x", "y", "z"].slice(0, columns.length).forEach(function (axis, i) {
        at[axis] = [front.values[n][columns[i]]];
      });
      if (plot.ring === undefined) {
        plot.ring = plot.data.length;
        var line = { width: 3, color: CHOSEN };
        Plotly.addTraces(plot, Object.assign({
          type: columns.length === 3 ? "scatter3d" : "scatter", mode: "markers", name: "chosen",
          hoverinfo: "skip", showlegend: false,
          marker: { symbol: "circle-open", size: 15, color: CHOSEN, line: line }
        }, at));
      } else {
        Object.keys(at).forEach(function (axis) { at[axis] = [at[axis]]; });
        Plotly.restyle(plot, at, [plot.ring]);
      }
    });
  }
  function close() { document.getElementById("plan").hidden = true; }
  document.getElementById("close").addEventListener("click", close);
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { close(); }
  });
  document.getElementById("point").addEventListener("change", function (event) {
    choose(Math.round(Number(event.target.value)));
  });

  plots.forEach(function (plot) {
    plot.colours = plot.data.map(function (trace) { return trace.marker && trace.marker.color; });
    plot.on("plotly_click", function (event) {
      var point = event.points.find(function (each) { return each.customdata !== undefined; });
      if (point) { choose(point.customdata); }
    });
    if (isParallel(plot)) {
      plot.on("plotly_restyle", function () { if (!own) { read(plot); } });
      if (window.innerWidth < 700) {
        Plotly.restyle(plot, { labelangle: -25, "labelfont.size": 11, "tickfont.size": 10 });
        Plotly.relayout(plot, { "margin.l": 50, "margin.r": 50, "margin.t": 100 });
      }
    }
  });
  draw();
})();
