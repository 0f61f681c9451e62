// A route between two places: the line on the map, the distance, the time and every turn.
import { closeLink, element, hours, metres } from "./parts.js";
import { find, nameOf, place } from "./search.js";

const SERVERS = { bicycle: "routed-bike", bike: "routed-bike", car: "routed-car", foot: "routed-foot" };
const ARROWS = { "left": "←", "right": "→", "slight left": "↖", "slight right": "↗", "sharp left": "↙", "sharp right": "↘", "straight": "↑",
  "uturn": "↶" };

const select = () => document.querySelector("select.routing_engines");
export const chosenEngine = () => select().value;

function choose(engine) {
  const remembered = /_osm_directions_engine=([a-z_]+)/.exec(document.cookie)?.[1];
  const wanted = (engine ?? remembered ?? "fossgis_osrm_car").replace(/bike$/, "bicycle");
  if ([...select().options].some((option) => option.value === wanted)) select().value = wanted;
  return SERVERS[select().value.replace("fossgis_osrm_", "")];
}

function marker(at, letter, kind) {
  const icon = L.divIcon({ className: "", iconSize: [22, 22], html: `<span class="mark ${kind}">${letter}</span>` });
  return L.marker(at, { icon, title: letter === "A" ? "Start" : "Destination" });
}

// Finds a place by coordinates or by words, and the name that the form then shows.
async function locate(view, text) {
  const at = place(text);
  if (at) return { at, name: (await nameOf(...at))?.display_name ?? text };
  const [found] = await find(text, { limit: 1, viewbox: view.map.getBounds().toBBoxString() });
  if (!found) throw new Error(`Sorry, no place is called “${text}”.`);
  return { at: [+found.lat, +found.lon], name: found.display_name };
}

export async function showDirections(view, parameters) {
  const server = choose(parameters.get("engine"));
  const [from, to] = document.querySelectorAll("[name='route_from'], [name='route_to']");
  const route = (parameters.get("route") ?? "").split(";");
  const ends = [parameters.get("from") ?? route[0] ?? "", parameters.get("to") ?? route[1] ?? ""].map((text) => text.trim());
  from.value = ends[0];
  to.value = ends[1];
  view.title("Directions");
  if (!ends[0] || !ends[1]) {
    for (const [index, text] of ends.entries()) {
      const at = place(text);
      if (at) view.overlay.addLayer(marker(at, index ? "B" : "A", index ? "finish" : "start"));
    }
    return;
  }
  const waiting = element("p", { className: "note" }, "Looking for a route …");
  view.content.append(closeLink(), element("h2", "Directions"), waiting);
  try {
    const [a, b] = await Promise.all(ends.map((end) => locate(view, end)));
    const { line, legs, distance, duration } = await ask(server, a.at, b.at);
    if (!view.current()) return;
    [from.value, to.value] = [a.name, b.name];
    // The address contains the coordinates of the places instead of the words that were entered.
    const address = `/directions?engine=${chosenEngine()}&route=${[a.at, b.at].map((at) => at.map((part) => part.toFixed(5)).join("%2C")).join("%3B")}`;
    history.replaceState(null, "", address + location.hash);
    const drawn = L.polyline(line, { color: "#0044cc", weight: 7, opacity: 0.55 });
    view.overlay.addLayer(drawn).addLayer(marker(a.at, "A", "start")).addLayer(marker(b.at, "B", "finish"));
    if (view.fit) view.map.fitBounds(drawn.getBounds().pad(0.05));
    waiting.replaceWith(element("p", { id: "routing_summary" }, `Distance: ${metres(distance)}. Time: ${hours(duration)}.`),
      turns(view, legs.flatMap((leg) => leg.steps)), element("p", { className: "note" }, "Directions computed by OSRM"));
  } catch (error) {
    if (view.current()) waiting.replaceWith(element("p", { className: "error", id: "routing_error" }, error.message));
  }
}

async function ask(server, a, b) {
  const points = [a, b].map(([lat, lon]) => `${lon},${lat}`).join(";");
  const answer = await fetch(`/osrm/${server}/route/v1/driving/${points}?overview=full&geometries=geojson&steps=true`);
  const found = await answer.json();
  if (found.code !== "Ok") throw new Error("Couldn't find a route between those two places.");
  const [route] = found.routes;
  return { ...route, line: route.geometry.coordinates.map(([lon, lat]) => [lat, lon]) };
}

function turns(view, steps) {
  const rows = steps.map((step, index) => {
    const row = element("tr", { className: "turn" }, element("td", { className: "direction" }, ARROWS[step.maneuver.modifier] ?? (index ? "↑" : "●")),
      element("td", { className: "instruction" }, element("b", `${index + 1}. `), instruction(step)),
      element("td", { className: "distance" }, step.distance ? metres(step.distance) : ""));
    const [lon, lat] = step.maneuver.location;
    row.addEventListener("click", () => view.map.setView([lat, lon], Math.max(view.map.getZoom(), 16)));
    return row;
  });
  return element("table", { id: "turnbyturn" }, element("tbody", ...rows));
}

function instruction({ name, ref, maneuver: { type, modifier = "straight", exit } }) {
  const road = name && ref ? `${name} (${ref})` : name || ref || "unnamed road";
  const turn = modifier === "straight" ? "Go straight on" : modifier === "uturn" ? "Make a U-turn" : `Turn ${modifier}`;
  const keep = modifier.replace("slight ", "").replace("sharp ", "");
  switch (type) {
    case "depart": return `Start on ${road}`;
    case "arrive": return "Reach destination";
    case "new name": case "notification": return `Continue on ${road}`;
    case "continue": return modifier === "straight" ? `Continue on ${road}` : `${turn} to stay on ${road}`;
    case "merge": return `Merge onto ${road}`;
    case "on ramp": return `Take the ramp on the ${keep} onto ${road}`;
    case "off ramp": return `Take the exit on the ${keep} onto ${road}`;
    case "fork": return `At the fork keep ${keep} onto ${road}`;
    case "end of road": return `At the end of the road ${turn.toLowerCase()} onto ${road}`;
    case "roundabout": case "rotary": return `At the roundabout take exit ${exit ?? 1} onto ${road}`;
    case "exit roundabout": case "exit rotary": return `Leave the roundabout onto ${road}`;
    default: return `${turn} onto ${road}`;
  }
}
