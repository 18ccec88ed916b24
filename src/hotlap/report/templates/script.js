// Everything can be read without this: it adds a tooltip that follows the pointer, and copy buttons.
(function () {
  var root = document.documentElement, tip = document.getElementById("tip");
  root.classList.add("js");
  document.querySelectorAll("[data-tip]").forEach(function (mark) {
    mark.removeAttribute("title");
    var inner = mark.querySelector("title");
    if (inner) inner.remove();
  });
  function show(event) {
    var mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (!mark) { tip.hidden = true; return; }
    tip.textContent = mark.getAttribute("data-tip");
    tip.hidden = false;
    var box = tip.getBoundingClientRect(), wide = root.clientWidth;
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, wide - box.width - 8)) + "px";
    tip.style.top = (event.clientY - box.height - 12 > 8 ? event.clientY - box.height - 12 : event.clientY + 18) + "px";
  }
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", function () { tip.hidden = true; }, { passive: true });
  document.querySelectorAll(".copy-button").forEach(function (button) {
    button.addEventListener("click", function () {
      var code = button.parentNode.querySelector("code");
      function done() {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      }
      function byHand() { // a file:// page may have no clipboard
        var range = document.createRange();
        range.selectNodeContents(code);
        var selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        if (document.execCommand("copy")) done();
      }
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, byHand);
      else byHand();
    });
  });
  addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not(.data)").forEach(function (d) { d.open = true; });
  });
})();
