// The page of a front: its data and packed plans are in the page.
(function (placeopt) {
  "use strict";
  function text(id) { return document.getElementById(id).textContent; }
  // Plans are JSON, deflated, in base64; a browser without the means to inflate shows none.
  function unpack(packed) {
    if (typeof DecompressionStream !== "function") { return Promise.resolve(null); }
    var bytes = Uint8Array.from(atob(packed), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }
  var front = JSON.parse(text("front-data")), plans = unpack(text("front-plans"));
  placeopt.choose(front, {
    detail: function (n) {
      return plans.then(function (all) { return all && all[n] || null; });
    },
    without: function (n) {
      var remedy = " placeopt plot " + front.file + " --point " + n + " draws this one.";
      if (typeof DecompressionStream !== "function") {
        return "This browser is too old to unpack the plans." + remedy;
      }
      return "This page has the plans of " + front.packed.toLocaleString("en") + " of " +
        front.values.length.toLocaleString("en") + " points, spread over the front." + remedy;
    }
  });
})(window.placeopt);
