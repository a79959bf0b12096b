// The page of an explorer: asks the server for what there is, and again while it changes.
(function (placeopt) {
  "use strict";
  var EVERY = 1500; // ms between two questions
  var version = "", group = "", shown = null, held = false, known = {};

  function get(id) { return document.getElementById(id); }
  function ask(name, query) {
    var parts = Object.keys(query).map(function (key) {
      return key + "=" + encodeURIComponent(query[key]);
    });
    return fetch(name + "?" + parts.join("&")).then(function (answer) {
      return answer.ok ? answer.json() : answer.text().then(function (why) {
        throw new Error(why);
      });
    });
  }
  function send(name, body) {
    return fetch(name, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body)
    }).then(function (answer) {
      return answer.ok ? answer.json() : answer.text().then(function (why) {
        throw new Error(why);
      });
    });
  }

  // A plan's details are asked for once; of a front that has changed meanwhile there are none.
  function detail(n) {
    var of = version;
    if (!known[n]) {
      known[n] = ask("plan", { n: n, version: of, group: group }).then(function (plan) {
        return plan.stale ? null : plan;
      }, function () {
        if (of === version) { delete known[n]; }
        return null;
      });
    }
    return known[n];
  }
  var options = {
    detail: detail,
    without: function () { return "The facts of this plan are on their way."; }
  };

  function show(state) {
    version = state.version;
    group = state.group;
    known = {};
    get("said").textContent = state.said;
    get("empty").hidden = !state.empty;
    get("empty").textContent = state.empty;
    if (state.name) {
      document.title = state.name + ": explore";
      document.querySelector("h1").textContent = state.name;
    }
    groups(state.groups);
    get("instance").innerHTML = state.instance;
    get("instance").closest("details").hidden = !state.instance;
    get("choice").hidden = !state.front;
    if (state.front) { shown = placeopt.choose(state.front, options, shown); }
    ["compare", "others", "drawn"].forEach(function (id) {
      if (!state.front) { get(id).hidden = true; }
    });
    get("runs").hidden = !state.runs;
    get("runs-list").innerHTML = state.runs; // escaped where it was made; the policy runs nothing
  }
  function groups(list) {
    var place = get("group");
    get("group-label").hidden = list.length < 2;
    place.textContent = "";
    list.forEach(function (pair) {
      placeopt.element("option", place, { value: pair[0] }, pair[1]);
    });
    place.value = group;
  }
  function run(told) {
    if (!told || !get("solve")) { return; }
    get("start").hidden = told.running;
    get("stop").hidden = !told.running;
    if (told.said) { get("run-said").textContent = told.said; }
  }

  function look() {
    if (document.hidden || held) { return Promise.resolve(); }
    return ask("state", { since: version, group: group }).then(function (state) {
      get("gone").hidden = true;
      run(state.run);
      if (state.version !== version && !held) { show(state); }
    }, function () { get("gone").hidden = false; });
  }
  function again() { look().then(function () { window.setTimeout(again, EVERY); }); }

  // What is being dragged is not taken from under the hand.
  document.addEventListener("pointerdown", function () { held = true; });
  ["pointerup", "pointercancel"].forEach(function (name) {
    document.addEventListener(name, function () { held = false; });
  });
  get("group").addEventListener("change", function () {
    group = get("group").value;
    version = "";
    shown = null;
    look();
  });
  if (get("solve")) {
    get("solve").addEventListener("submit", function (event) {
      event.preventDefault();
      var wanted = {
        method: get("method").value, seconds: Number(get("seconds").value),
        seed: Math.round(Number(get("seed").value))
      };
      send("solve", wanted).then(function (told) { run(told.run); }, function (error) {
        get("run-said").textContent = error.message;
      });
    });
    get("stop").addEventListener("click", function () {
      send("stop", {}).then(function (told) { run(told.run); });
    });
  }
  again();
})(window.placeopt);
