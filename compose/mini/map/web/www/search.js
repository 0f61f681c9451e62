// The results of a search, as a list with markers.
import { closeLink, element, kindOf, link, number } from "./parts.js";

const LIMIT = 10;

export async function find(query, extra = {}) {
  const parameters = new URLSearchParams({ q: query, format: "jsonv2", limit: LIMIT, addressdetails: 1, ...extra });
  const answer = await fetch(`/nominatim/search?${parameters}`);
  if (!answer.ok) throw new Error(`the search answers ${answer.status}`);
  return answer.json();
}

export async function nameOf(lat, lon, zoom = 18) {
  const answer = await fetch(`/nominatim/reverse?${new URLSearchParams({ lat, lon, zoom, format: "jsonv2" })}`);
  const found = await answer.json();
  return found.error ? null : found;
}

export function place(text) {
  const found = /^\s*(-?\d+(?:\.\d+)?)\s*[,; ]\s*(-?\d+(?:\.\d+)?)\s*$/.exec(text);
  return found && Math.abs(found[1]) <= 90 && Math.abs(found[2]) <= 180 ? [+found[1], +found[2]] : null;
}

export async function showSearch(view, parameters) {
  const query = parameters.get("query");
  view.title(query);
  view.content.append(closeLink(), element("h2", "Search Results"));
  const list = element("ul", { className: "results-list" });
  const waiting = element("p", { className: "note" }, "Searching …");
  view.content.append(element("h4", "Results from Nominatim"), list, waiting);
  const shown = [];
  try {
    const at = place(query);
    const results = at ? [await nameOf(...at)].filter(Boolean) : await find(query, { viewbox: view.map.getBounds().toBBoxString() });
    if (!view.current()) return;
    if (at) view.overlay.addLayer(L.marker(at, { title: query }));
    add(view, list, results, shown, !at);
    waiting.remove();
    if (!results.length) view.content.append(element("p", { className: "error" }, `No results found for “${query}”`));
    if (at) view.map.setView(at, 16);
    else if (view.fit && results.length) focus(view, results[0]);
    if (results.length === LIMIT) view.content.append(moreLink(view, list, query, shown));
  } catch (error) {
    if (view.current()) waiting.replaceWith(element("p", { className: "error" }, `The search failed: ${error.message}`));
  }
}

function moreLink(view, list, query, shown) {
  const more = element("a", { className: "search_more", href: "#" }, "More results");
  more.addEventListener("click", async (event) => {
    event.preventDefault();
    const results = await find(query, { exclude_place_ids: shown.join(","), viewbox: view.map.getBounds().toBBoxString() });
    if (!view.current()) return;
    add(view, list, results, shown, true);
    if (results.length < LIMIT) more.remove();
  });
  return more;
}

function add(view, list, results, shown, marked) {
  for (const result of results) {
    shown.push(result.place_id);
    const entry = element("li", { className: "search_results_entry" }, `${kindOf(result)} `,
      result.osm_type ? link(`/${result.osm_type}/${result.osm_id}`, result.display_name) : result.display_name);
    list.append(entry);
    if (!marked) continue;
    const marker = L.marker([result.lat, result.lon], { title: result.display_name }).bindTooltip(`${number(list.children.length)} ${result.name || result.display_name}`);
    marker.on("mouseover", () => entry.classList.add("selected")).on("mouseout", () => entry.classList.remove("selected"));
    marker.on("click", () => result.osm_type && view.go(`/${result.osm_type}/${result.osm_id}`));
    entry.addEventListener("mouseenter", () => marker.openTooltip());
    entry.addEventListener("mouseleave", () => marker.closeTooltip());
    view.overlay.addLayer(marker);
  }
}

export function focus(view, result) {
  const [south, north, west, east] = result.boundingbox.map(Number);
  view.map.fitBounds([[south, west], [north, east]], { maxZoom: 17 });
}
