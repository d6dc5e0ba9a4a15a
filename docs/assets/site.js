"use strict";
// Names what the theme leaves without a name, and lets the keyboard scroll wide tables.
addEventListener("DOMContentLoaded", () => {
  for (const search of document.querySelectorAll("[data-md-component=search]")) search.setAttribute("aria-label", "Search");
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
});
