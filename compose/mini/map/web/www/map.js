// The page: a map, and beside it the view of the present address. Every view has an address of its own:
//   /  /search?query=  /directions?engine=&route=LAT,LON;LAT,LON  /node/ID  /way/ID  /relation/ID   and #map=ZOOM/LAT/LON
import { showSearch } from "./search.js";
import { showDirections, chosenEngine } from "./directions.js";
import { showElement } from "./element.js";
import { contextMenu } from "./context.js";

const $ = (selector) => document.querySelector(selector);
const content = $("#sidebar_content");
const settings = await (await fetch("/map.json")).json();

$("#title").textContent = settings.title;
const map = L.map("map", { zoomControl: false, maxZoom: 19, minZoom: 0 });
L.control.zoom({ position: "topright" }).addTo(map);
L.control.scale({ position: "bottomleft" }).addTo(map);
L.tileLayer("/tile/{z}/{x}/{y}.png", { maxZoom: 19, attribution: settings.attribution }).addTo(map);
const overlay = L.featureGroup().addTo(map);

// The objects that views share: the map, a layer that the next view clears, and a function that opens another view.
const page = { map, overlay, content, settings, go, title };

function title(text) {
  document.title = text ? `${text} | ${settings.title}` : settings.title;
}

// Shows an address without reloading the page.
function go(address, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address + location.hash);
  show();
}

function position() {
  const found = /map=(\d+)\/(-?[\d.]+)\/(-?[\d.]+)/.exec(location.hash);
  return found && { zoom: +found[1], center: [+found[2], +found[3]] };
}

// Each view gets a number; an answer that arrives after the next view has begun is dropped.
let ticket = 0;

function show(first = false) {
  const mine = ++ticket;
  const view = { ...page, fit: !(first && start), current: () => mine === ticket };
  const parameters = new URLSearchParams(location.search);
  const element = /^\/(node|way|relation)\/(\d+)/.exec(location.pathname);
  const directions = location.pathname === "/directions";
  overlay.clearLayers();
  content.replaceChildren();
  $(".directions_form").hidden = !directions;
  $(".search_form").hidden = directions;
  title("");
  if (directions) return showDirections(view, parameters);
  $("#query").value = parameters.get("query") ?? "";
  if (element) return showElement(view, element[1], element[2]);
  if (location.pathname === "/search" && parameters.get("query")) return showSearch(view, parameters);
}

map.on("moveend", () => {
  const { lat, lng } = map.getCenter(), zoom = map.getZoom();
  const digits = Math.max(0, Math.ceil(Math.log2(zoom + 1)));
  history.replaceState(null, "", `${location.pathname}${location.search}#map=${zoom}/${lat.toFixed(digits)}/${lng.toFixed(digits)}`);
});

const start = position();
if (start) map.setView(start.center, start.zoom);
else map.fitBounds(settings.bounds);

$(".search_form").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = $("#query").value.trim();
  if (query) go(`/search?query=${encodeURIComponent(query)}`);
});
$(".describe_location").addEventListener("click", (event) => {
  event.preventDefault();
  const { lat, lng } = map.getCenter();
  go(`/search?query=${encodeURIComponent(`${lat.toFixed(5)}, ${lng.toFixed(5)}`)}`);
});
$(".directions_form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask($("#route_from").value.trim(), $("#route_to").value.trim());
});
$(".directions_form select").addEventListener("change", (event) => {
  document.cookie = `_osm_directions_engine=${event.target.value};path=/;max-age=31536000;samesite=lax`;
  if ($("#route_from").value.trim() && $("#route_to").value.trim()) ask($("#route_from").value.trim(), $("#route_to").value.trim());
});
$(".reverse_directions").addEventListener("click", (event) => {
  event.preventDefault();
  const from = $("#route_from"), to = $("#route_to");
  [from.value, to.value] = [to.value, from.value];
  if (from.value && to.value) ask(from.value, to.value);
});

function ask(from, to) {
  const parameters = new URLSearchParams({ engine: chosenEngine() });
  if (from) parameters.set("from", from);
  if (to) parameters.set("to", to);
  go(`/directions?${parameters}`);
}

// Links between views stay on the page; the browser handles links to other pages or into a new tab.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
window.addEventListener("popstate", () => show());
contextMenu(page);
show(true);
