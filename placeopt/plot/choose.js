// Choosing a plan: limits and weights of the goals, two plans side by side, commands to copy.
(function (placeopt) {
  "use strict";
  var element = placeopt.element, told = placeopt.told, number = placeopt.number;
  var HEAVIEST = 5; // the greatest weight
  var MOST = 12; // differences of two plans that are listed, of each kind

  function get(id) { return document.getElementById(id); }
  function indices(list) { return list.map(function (_, n) { return n; }); }
  function least(score, among) {
    var best = null;
    among.forEach(function (n) { if (best === null || score[n] < score[best]) { best = n; } });
    return best;
  }
  function table(place, caption, head, rows) {
    var region = element("div", place, {
      class: "scroll", tabindex: "0", role: "group", "aria-label": caption
    });
    var made = element("table", region);
    element("caption", made, {}, caption);
    var top = element("tr", element("thead", made));
    head.forEach(function (text) { element("th", top, { scope: "col" }, text); });
    var body = element("tbody", made);
    rows.forEach(function (cells) {
      var row = element("tr", body);
      cells.forEach(function (cell, k) {
        var made = element(k ? "td" : "th", row, k ? {} : { scope: "row" });
        if (typeof cell !== "string") { made.appendChild(cell); }
        else { items(cell).forEach(function (text) { element("div", made, {}, text); }); }
      });
    });
  }
  // A long list has one item a line.
  function items(text) { return text.length > 60 ? text.split(", ") : [text]; }
  function button(text, act, attributes) {
    var made = element("button", null, Object.assign({ type: "button" }, attributes), text);
    made.addEventListener("click", act);
    return made;
  }

  // -- rules: those of `placeopt pick`, on values scaled to the ranges of the front ---------------

  function scaled(front) {
    return front.values.map(function (row) {
      return row.map(function (value, k) {
        var spread = front.goals[k].worst - front.goals[k].best;
        return (value - front.goals[k].best) / (spread === 0 ? 1 : spread);
      });
    });
  }
  function kneeScore(rows) {
    return rows.map(function (row) {
      return row.reduce(function (sum, x) { return sum + x * x; }, 0);
    });
  }
  function topsisScore(rows, weights) {
    var worst = weights.map(function (_, k) {
      return Math.max.apply(null, rows.map(function (row) { return row[k]; }));
    });
    function length(row, from) {
      return Math.sqrt(row.reduce(function (sum, x, k) {
        var part = (x - from[k]) * weights[k];
        return sum + part * part;
      }, 0));
    }
    var best = weights.map(function () { return 0; });
    return rows.map(function (row) {
      var low = length(row, best), high = length(row, worst), both = low + high;
      return both > 0 ? -high / both : -1;
    });
  }
  function lexicographic(front, order, among) {
    return among.slice().sort(function (a, b) {
      for (var k = 0; k < order.length; k += 1) {
        var goal = front.goals[order[k]];
        var difference = goal.sign * (front.values[a][order[k]] - front.values[b][order[k]]);
        if (difference) { return difference; }
      }
      return a - b;
    })[0];
  }

  // -- what one plan costs against another ------------------------------------------------------

  // The step of a goal that prices are told for: 1 of its unit, or a power of ten that fits.
  function unitOf(goal) {
    var spread = Math.abs(goal.worst - goal.best) * goal.factor;
    return spread >= 2 || spread === 0 ? 1 : Math.pow(10, Math.floor(Math.log10(spread / 2)));
  }
  // The size of a change: of shares in percentage points.
  function size(goal, change) {
    var shown = number(Math.abs(change) * goal.factor);
    if (goal.suffix !== "%") { return shown + goal.suffix; }
    return shown + "\u00a0%\u2011point" + (shown === "1" ? "" : "s");
  }
  function signed(goal, change) {
    var shown = size(goal, change);
    return change === 0 ? "the same" : (change > 0 ? "+" : "\u2212") + shown;
  }
  // For each goal the plan that improves it for the least loss of the others, per unit gained.
  function prices(front, from, among) {
    var here = front.values[from];
    return front.goals.map(function (goal, k) {
      var best = null, least = Infinity;
      among.forEach(function (n) {
        var gain = goal.sign * (here[k] - front.values[n][k]);
        if (gain <= 0) { return; }
        var loss = 0;
        front.goals.forEach(function (other, j) {
          var spread = Math.abs(other.worst - other.best) || 1;
          var worse = other.sign * (front.values[n][j] - here[j]);
          if (j !== k && worse > 0) { loss += worse / spread; }
        });
        if (loss / gain < least) { least = loss / gain; best = n; }
      });
      return best;
    });
  }
  function words(list) {
    return list.length < 2 ? list.join("") :
      list.slice(0, -1).join(", ") + " and " + list[list.length - 1];
  }
  // "Plan 7 instead of plan 3 gives 2 ms less latency, in exchange for 31 USD more cost."
  function exchange(front, a, b) {
    var won = [], paid = [];
    front.goals.forEach(function (goal, k) {
      var change = front.values[b][k] - front.values[a][k];
      if (change === 0) { return; }
      var phrase = size(goal, change) + (change < 0 ? " less " : " more ") + goal.short;
      (goal.sign * change < 0 ? won : paid).push(phrase);
    });
    if (!won.length && !paid.length) { return "Both plans have the same values."; }
    return "Plan " + b + " instead of plan " + a + " gives " + (words(won) || "nothing better") +
      ", in exchange for " + (words(paid) || "nothing") + ".";
  }
  // Sentences: how much of each goal that gets worse is paid for a unit of each that gets better.
  function rates(front, a, b) {
    var change = front.goals.map(function (_, k) {
      return front.values[b][k] - front.values[a][k];
    });
    var won = indices(change).filter(function (k) { return front.goals[k].sign * change[k] < 0; });
    var paid = indices(change).filter(function (k) { return front.goals[k].sign * change[k] > 0; });
    return won.map(function (k) {
      var goal = front.goals[k], unit = unitOf(goal) / goal.factor;
      var parts = paid.map(function (j) {
        var other = front.goals[j], rate = Math.abs(change[j] / change[k]) * unit;
        return size(other, placeopt.rounded(rate)) + " of " + other.short;
      });
      return parts.length ? "Each " + size(goal, unit) + " of " + goal.short + " costs " +
        words(parts) + "." : "";
    }).filter(Boolean);
  }

  // -- what differs between two plans -----------------------------------------------------------

  function brief(value) {
    var text = typeof value === "string" ? value : JSON.stringify(value);
    text = text === undefined ? "nothing" : text.replace(/[{}"\[\]]/g, "").replace(/([:,])/g, "$1 ");
    return text.length > 90 ? text.slice(0, 88) + "\u2026" : text;
  }
  function counted(list) {
    var found = {};
    list.forEach(function (item) {
      var key = JSON.stringify(item);
      found[key] = (found[key] || 0) + 1;
    });
    return found;
  }
  // Entries of one list that the other lacks, the most frequent kind first.
  function missing(mine, theirs) {
    var have = counted(theirs), found = counted(mine);
    return Object.keys(found).map(function (key) {
      return { key: key, times: found[key] - (have[key] || 0) };
    }).filter(function (item) { return item.times > 0; });
  }
  // Rows [what, in A, in B] of the parts that differ; a list is compared without its order.
  function differences(a, b) {
    var rows = [];
    var names = Object.keys(a).concat(Object.keys(b).filter(function (n) { return !(n in a); }));
    names.forEach(function (name) {
      var one = a[name], two = b[name], part = [];
      if (Array.isArray(one) && Array.isArray(two)) {
        missing(one, two).forEach(function (item) {
          part.push([name, item.times + " \u00d7 " + brief(JSON.parse(item.key)), "\u2013"]);
        });
        missing(two, one).forEach(function (item) {
          part.push([name, "\u2013", item.times + " \u00d7 " + brief(JSON.parse(item.key))]);
        });
      } else if (one && two && typeof one === "object" && typeof two === "object") {
        Object.keys(Object.assign({}, one, two)).forEach(function (key) {
          if (JSON.stringify(one[key]) !== JSON.stringify(two[key])) {
            part.push([name + " of " + key, brief(one[key]), brief(two[key])]);
          }
        });
      } else if (JSON.stringify(one) !== JSON.stringify(two)) {
        part.push([name, brief(one), brief(two)]);
      }
      var more = part.length - MOST;
      rows = rows.concat(part.slice(0, MOST));
      if (more > 0) { rows.push([name, number(more) + " more differ", ""]); }
    });
    return rows;
  }

  // -- the page ---------------------------------------------------------------------------------

  // options: detail(n) -> promise of {facts, plan, html} or null; without(n) -> why it is null.
  // before: what an earlier call returned, of a front that has grown since: limits, weights, the
  // chosen plan and the pinned ones stay.
  function choose(front, options, before) {
    var count = front.goals.length, charts = [], rows = [], all = indices(front.values);
    var main = front.goals.length > 1 ? placeopt.axesOf(front) : null;
    var state;

    function within() { return all.filter(function (n) { return front.kept[n]; }); }
    function isSet() {
      return state.weights.some(function (weight) { return weight !== 1; });
    }
    function rule() {
      var among = within();
      if (state.order) { return lexicographic(front, state.order, among); }
      var rows = scaled(front);
      return least(isSet() ? topsisScore(rows, state.weights) : kneeScore(rows), among);
    }
    function reset() {
      state = {
        limits: front.goals.map(function () { return null; }),
        weights: front.goals.map(function () { return 1; }),
        order: null, point: null
      };
    }
    function keep() {
      front.kept = front.values.map(function (row) {
        return row.every(function (value, k) {
          var limit = state.limits[k];
          return limit === null || front.goals[k].sign * (value - limit) <= 0;
        });
      });
    }
    var waiting = false;
    function refresh() {
      keep();
      front.chosen = state.point !== null ? state.point : rule();
      if (waiting) { return; }
      waiting = true;
      window.requestAnimationFrame(function () { waiting = false; show(); });
    }
    function show() {
      charts.forEach(function (chart) { chart.draw(); });
      if (main) { placeopt.legend(get("legend"), front, main.colour); }
      var kept = within().length;
      get("kept").textContent = (kept === all.length ? "all " : number(kept) + " of ") +
        placeopt.plans(all.length);
      rows.forEach(function (row) { row.fill(); });
      showPlan();
      showComparison();
    }

    // -- limits and weights

    function goalRow(goal, k) {
      var place = element("div", get("rows"), { class: "goal" });
      element("strong", place, {}, goal.label);
      var values = front.values.map(function (row) { return row[k]; });
      var steps = Array.from(new Set(values)).sort(function (a, b) { return goal.sign * (a - b); });
      var compare = goal.sign < 0 ? "at least" : "at most";
      var name = goal.short + " " + compare, last = steps.length - 1;
      var limit = element("label", place, { class: "limit" }, compare + " ");
      var slider = element("input", limit, {
        type: "range", min: 0, max: last, step: 1, "aria-label": name, id: "limit-" + k
      });
      var field = element("input", limit, {
        type: "number", step: "any", "aria-label": name + ", typed"
      });
      var weight = element("label", place, { class: "weight" }, "weight ");
      var heavy = element("input", weight, {
        type: "range", min: 0, max: HEAVIEST, step: 0.5, "aria-label": "weight of " + goal.short,
        id: "weight-" + k
      });
      var shown = element("output", weight);
      function set(value) {
        // The best value is always kept, however tight the limit.
        var beyond = goal.sign * (value - goal.best) < 0 ? goal.best : value;
        state.limits[k] = isFinite(value) && goal.sign * (value - goal.worst) < 0 ? beyond : null;
        loosen(k);
        state.point = null;
        refresh();
      }
      slider.addEventListener("input", function () { set(steps[Number(slider.value)]); });
      field.addEventListener("change", function () {
        set(field.value === "" ? NaN : Number(field.value) / goal.factor);
      });
      heavy.addEventListener("input", function () {
        state.weights[k] = Number(heavy.value);
        if (!state.weights.some(Boolean)) { state.weights[k] = 0.5; }
        state.order = state.point = null;
        refresh();
      });
      return {
        fill: function () {
          var value = state.limits[k] === null ? goal.worst : state.limits[k];
          var at = steps.findIndex(function (step) { return goal.sign * (step - value) > 0; });
          slider.value = at < 0 ? last : Math.max(0, at - 1);
          slider.setAttribute("aria-valuetext", told(goal, value));
          if (document.activeElement !== field) {
            field.value = Number((value * goal.factor).toPrecision(6));
          }
          heavy.value = state.weights[k];
          shown.textContent = number(state.weights[k]);
          place.classList.toggle("set", state.limits[k] !== null || state.weights[k] !== 1);
        }
      };
    }
    // Limits that leave no plan give way: the one that was set last stays.
    function loosen(last) {
      keep();
      front.goals.forEach(function (goal, k) {
        if (k !== last && !front.kept.some(Boolean)) { state.limits[k] = null; keep(); }
      });
    }

    // -- the chosen plan

    function whyText() {
      if (state.point !== null) { return "You chose this plan."; }
      var limited = state.limits.some(function (limit) { return limit !== null; });
      var among = limited ? " of the plans within the limits" : "";
      if (state.order) {
        var first = front.goals[state.order[0]];
        return "It has the " + (first.sign < 0 ? "greatest " : "least ") + first.short + among + ".";
      }
      if (isSet()) { return "It is nearest to the best, by these weights (TOPSIS)" + among + "."; }
      return "The knee: nearest to the best of every goal at once" + among + ".";
    }
    function showPlan() {
      var n = front.chosen;
      get("plan-h").textContent = "Plan " + n;
      get("plan-why").textContent = whyText();
      get("point").value = n;
      get("plan-values").textContent = "";
      table(get("plan-values"), "Values of plan " + n, ["goal", "value", "against the knee"],
        front.goals.map(function (goal, k) {
          var value = front.values[n][k];
          var change = n === front.knee ? "" : signed(goal, value - front.values[front.knee][k]);
          return [goal.short, told(goal, value), change];
        }));
      showPrices(n);
      showCommands(n);
      detailOf(n, function (known) {
        var place = get("plan-facts");
        place.textContent = "";
        var facts = [["proof", placeopt.proof(front, n)], ["found by", placeopt.origin(front, n)]];
        if (known === null) { element("p", place, { class: "note" }, options.without(n)); }
        get("drawn").hidden = !(known && known.html);
        // Escaped where it was made; the policy of the page runs nothing in it.
        get("drawn-plan").innerHTML = known && known.html || "";
        get("drawn-h").textContent = "Plan " + n + " in detail";
        facts = facts.concat(known ? known.facts : []);
        var list = element("dl", place, { class: "facts" });
        facts.forEach(function (fact) {
          var row = element("div", list);
          element("dt", row, {}, fact[0]);
          items(fact[1]).forEach(function (item) { element("dd", row, {}, item); });
        });
        if (known) {
          var more = element("details", place);
          element("summary", more, {}, "The whole plan as JSON");
          element("pre", more, { tabindex: "0" }, JSON.stringify(known.plan, null, 1));
          more.open = known.facts.length === 0;
        }
      });
    }
    // Tells `then` of a plan's details, unless another plan has been chosen meanwhile.
    function detailOf(n, then) {
      options.detail(n).then(function (known) { if (front.chosen === n) { then(known); } });
    }
    function showPrices(n) {
      var place = get("plan-price"), found = prices(front, n, within());
      place.textContent = "";
      if (count < 2) { return; }
      var varying = placeopt.varying(front.goals);
      var list = varying.filter(function (k) { return found[k] !== null; }).map(function (k) {
        var goal = front.goals[k], unit = unitOf(goal) / goal.factor;
        var gain = Math.abs(front.values[found[k]][k] - front.values[n][k]);
        var cells = varying.map(function (j) {
          if (j === k) { return ""; }
          var other = front.goals[j];
          var change = front.values[found[k]][j] - front.values[n][j];
          return signed(other, placeopt.rounded(change / gain * unit));
        });
        var toward = button("plan " + found[k], function () { pick(found[k]); }, {
          class: "link", title: goal.short + " " + told(goal, front.values[found[k]][k])
        });
        var better = goal.sign < 0 ? " more " : " less ";
        return [size(goal, unit) + better + goal.short].concat(cells, [toward]);
      });
      if (!list.length) { return; }
      var head = ["for"].concat(varying.map(function (k) { return front.goals[k].short; }));
      table(place, "What one more unit costs", head.concat(["towards"]), list);
    }
    function showCommands(n) {
      var place = get("plan-commands");
      place.textContent = "";
      var commands = [];
      if (state.point === null) { commands.push(["This choice", pickCommand()]); }
      commands = commands.concat(front.commands.map(function (pair) {
        return [pair[0], pair[1].replace("{point}", n)];
      }));
      commands.forEach(function (pair) {
        var row = element("div", place, { class: "command" });
        element("span", row, {}, pair[0]);
        element("code", row, {}, pair[1]);
        var copied = button("Copy", function () { copy(pair[1], copied); }, {
          "aria-label": "Copy the command: " + pair[0]
        });
        row.appendChild(copied);
      });
    }
    function pickCommand() {
      var parts = ["placeopt pick " + front.file];
      state.limits.forEach(function (limit, k) {
        if (limit !== null) { parts.push("--budget " + front.goals[k].name + "=" + limit); }
      });
      if (state.order) {
        parts.push("--lex " + state.order.map(function (k) { return front.goals[k].name; }).join());
      } else if (isSet()) {
        state.weights.forEach(function (weight, k) {
          if (weight !== 1) { parts.push("--topsis " + front.goals[k].name + "=" + weight); }
        });
      }
      return parts.join(" ") + " -o plan.json";
    }
    function copy(text, place) {
      var copied = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject();
      copied.then(function () { place.textContent = "Copied"; }, function () {
        window.getSelection().selectAllChildren(place.previousSibling);
        place.textContent = "Press Ctrl-C";
      });
    }

    // -- two plans

    function showComparison() {
      var a = front.pins.A, b = front.pins.B;
      if (a === undefined && b !== undefined) { a = b; b = undefined; }
      var other = b === undefined ? front.chosen : b;
      var shown = a !== undefined && a !== other;
      get("compare").hidden = !shown;
      get("pin-a").setAttribute("aria-pressed", String(front.pins.A === front.chosen));
      get("pin-b").setAttribute("aria-pressed", String(front.pins.B === front.chosen));
      if (!shown) { return; }
      get("exchange").textContent = [exchange(front, a, other)].concat(rates(front, a, other)).join(" ");
      get("compare-values").textContent = "";
      table(get("compare-values"), "Values of both", ["goal", "plan " + a, "plan " + other, "difference"],
        front.goals.map(function (goal, k) {
          var one = front.values[a][k], two = front.values[other][k];
          var share = one > 0 && two !== one ? " (" + percent(two / one - 1) + ")" : "";
          return [goal.short, told(goal, one), told(goal, two), signed(goal, two - one) + share];
        }));
      Promise.all([options.detail(a), options.detail(other)]).then(function (both) {
        ["compare-facts", "compare-plans"].forEach(function (id) { get(id).textContent = ""; });
        if (!both[0] || !both[1]) { return; }
        var names = ["what", "plan " + a, "plan " + other];
        var facts = both[0].facts.map(function (fact, k) {
          return [fact[0], fact[1], (both[1].facts[k] || ["", ""])[1]];
        }).filter(function (row) { return row[1] !== row[2]; });
        if (facts.length) { table(get("compare-facts"), "Facts that differ", names, facts); }
        var rest = differences(both[0].plan, both[1].plan);
        if (rest.length) {
          var more = element("details", get("compare-plans"), facts.length ? {} : { open: "" });
          element("summary", more, {}, "What differs in the plans");
          table(more, "Parts that differ", names, rest);
        }
      });
    }
    function percent(share) {
      return (share > 0 ? "+" : "\u2212") + number(placeopt.rounded(Math.abs(share) * 100)) +
        "%";
    }
    function pin(name) {
      if (front.pins[name] === front.chosen) { delete front.pins[name]; }
      else { front.pins[name] = front.chosen; }
      show();
    }

    // -- charts

    function pick(n) {
      if (!(n >= 0 && n < front.values.length)) { return; }
      state.point = n;
      refresh();
    }
    function tell(n) { return placeopt.tell(front, n); }
    function addCharts() {
      document.querySelector(".chart-side").hidden = !main;
      if (!main) { return; }
      get("plane").textContent = "";
      var label = "Chart of " + front.goals.map(function (g) { return g.short; }).join(", ") +
        ". The arrow keys move from plan to plan.";
      charts.push(placeopt.plane(element("div", get("plane"), { id: "first-plane" }), front, {
        axes: main, label: label, tell: tell, choose: pick,
        height: function (width) { return Math.max(300, Math.min(520, width * 0.62)); },
        fit: function () { return get("fit").checked; }
      }));
      axisChoosers();
      get("others").hidden = placeopt.varying(front.goals).length < 3;
      addPairs();
    }
    function addPairs() {
      get("pairs").textContent = "";
      charts = charts.concat(placeopt.gallery(get("pairs"), front, {
        axes: main, choose: pick, fit: function () { return get("fit").checked; }
      }));
    }
    function axisChoosers() {
      ["x", "y", "colour"].forEach(function (axis) {
        var place = get("axis-" + axis);
        place.textContent = "";
        front.goals.forEach(function (goal, k) { element("option", place, { value: k }, goal.short); });
        if (axis === "colour") { element("option", place, { value: "" }, "method"); }
        place.value = main[axis] === null ? "" : String(main[axis]);
        place.onchange = function () {
          main[axis] = place.value === "" ? null : Number(place.value);
          refresh();
        };
      });
    }

    // -- begin

    function same(row) {
      var key = JSON.stringify(row);
      var found = front.values.findIndex(function (one) { return JSON.stringify(one) === key; });
      return found < 0 ? null : found;
    }
    function restore() {
      var old = before.front, was = before.state();
      if (JSON.stringify(old.goals.map(nameOf)) !== JSON.stringify(front.goals.map(nameOf))) {
        return;
      }
      state = Object.assign(was, { point: was.point === null ? null : same(old.values[was.point]) });
      Object.keys(old.pins).forEach(function (name) {
        var n = same(old.values[old.pins[name]]);
        if (n !== null) { front.pins[name] = n; }
      });
      if (main && before.axes) { Object.assign(main, before.axes); }
      keep();
      if (!front.kept.some(Boolean)) { reset(); }
    }
    function nameOf(goal) { return goal.name; }

    var focused = document.activeElement && document.activeElement.id;
    front.pins = {};
    front.kept = front.values.map(function () { return true; });
    reset();
    if (before) { restore(); }
    front.knee = least(kneeScore(scaled(front)), all);
    front.chosen = front.knee;
    get("point").max = all.length - 1;
    get("rows").textContent = "";
    front.goals.forEach(function (goal, k) { rows.push(goalRow(goal, k)); });
    get("reset").onclick = function () { reset(); refresh(); };
    get("pin-a").onclick = function () { pin("A"); };
    get("pin-b").onclick = function () { pin("B"); };
    get("unpin").onclick = function () { front.pins = {}; show(); };
    get("point").onchange = function (event) { pick(Math.round(Number(event.target.value))); };
    get("fit").onchange = refresh;
    get("goals").onsubmit = function () { return false; };
    get("shortcuts").textContent = "";
    get("shortcuts").appendChild(button("Knee", function () { shortcut(null); }));
    if (count > 1) {
      placeopt.varying(front.goals).forEach(function (k) {
        var goal = front.goals[k];
        var text = (goal.sign < 0 ? "Greatest " : "Least ") + goal.short;
        var order = [k].concat(indices(front.goals).filter(function (j) { return j !== k; }));
        get("shortcuts").appendChild(button(text, function () { shortcut(order); }));
      });
    }
    function shortcut(order) {
      state.weights = state.weights.map(function () { return 1; });
      state.order = order;
      state.point = null;
      refresh();
    }
    addCharts();
    refresh();
    if (before && focused && get(focused)) { get(focused).focus({ preventScroll: true }); }
    return { front: front, axes: main, state: function () { return state; } };
  }

  Object.assign(placeopt, { choose: choose });
})(window.placeopt = window.placeopt || {});
