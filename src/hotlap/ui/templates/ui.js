
// The pages can be read without this: it filters as one types, counts the ticks, and puts new numbers in place.
(function () {
  var EVERY_MS = 2000;
  function byId(id) { return document.getElementById(id); }

  var search = byId("q"), rows = Array.prototype.slice.call(document.querySelectorAll(".runs tbody tr"));
  if (search && search.form.classList.contains("whole")) { // else the server looks, in those that are not shown too
    search.addEventListener("input", function () {
      var words = search.value.toLowerCase().split(/\s+/), shown = 0;
      rows.forEach(function (row) {
        var text = row.getAttribute("data-text");
        row.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
        shown += row.hidden ? 0 : 1;
      });
      byId("count").textContent = shown + " of " + rows.length;
    });
  }

  var pick = byId("pick");
  if (pick) {
    var ticked = function () {
      var count = pick.querySelectorAll("input:checked").length;
      byId("compare").disabled = count !== 2;
      byId("picked").textContent = count === 2 ? "" : count + " ticked";
    };
    pick.addEventListener("change", ticked);
    ticked();
  }

  var live = byId("live");
  if (!live || live.dataset.ended === "yes") return;

  function element(name, css, text) {
    var made = document.createElement(name);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function bar(segments) {
    var stack = element("div", "stack"), legend = element("ul", "legend"), words = [];
    segments.forEach(function (s) {
      var part = element("span", "seg " + s.css), line = element("li");
      part.style.width = s.width + "%";
      part.setAttribute("data-tip", s.name + "\n" + s.share + " · " + s.per_step + " per step");
      if (s.width >= 8) part.appendChild(element("em", s.width < 22 ? "wide" : "", s.share));
      stack.appendChild(part);
      line.append(element("i", s.css), element("span", "", s.name), element("b", "", s.share), element("span", "muted", s.per_step));
      legend.appendChild(line);
      words.push(s.name + " " + s.share);
    });
    stack.setAttribute("role", "img");
    stack.setAttribute("aria-label", words.join(", "));
    byId("segments").replaceChildren(stack, legend);
  }

  function show(now) {
    var trouble = byId("trouble");
    trouble.hidden = !now.problem;
    trouble.textContent = now.problem || "";
    if (now.problem) return;
    now.facts.forEach(function (fact) {
      var place = document.querySelector("[data-fact=" + fact[0] + "]");
      if (!place) return;
      place.previousElementSibling.textContent = fact[1];
      place.textContent = fact[2];
    });
    var status = byId("status");
    if (status.textContent !== now.status) { // said aloud by screen readers: only when it changes
      status.textContent = now.status;
      status.className = "badge s-" + now.status_css;
    }
    if (now.segments.length) bar(now.segments);
    byId("phases-of").textContent = now.segments_of;
    if (now.chart) byId("chart").innerHTML = now.chart; // SVG of numbers, made by the server
    byId("alarms").replaceChildren.apply(byId("alarms"), now.alarms.map(function (text) {
      return element("p", "notice", text);
    }));
    byId("news").hidden = now.results === live.dataset.results;
  }

  function ask() {
    fetch(live.dataset.now, { cache: "no-store" }).then(function (answer) {
      if (!answer.ok) throw new Error("the server says " + answer.status);
      return answer.json();
    }).then(function (now) {
      show(now);
      if (!now.ended) setTimeout(ask, EVERY_MS);
    }, function (error) {
      show({ problem: "No numbers come any more (" + error.message + "). Does hotlap ui still run?" });
      setTimeout(ask, 5 * EVERY_MS);
    });
  }
  setTimeout(ask, EVERY_MS);
})();
