// One object of the map: its name, its tags, its position.
import { capital, closeLink, element, link } from "./parts.js";

export async function showElement(view, type, id) {
  const letter = type[0].toUpperCase();
  const answer = await fetch(`/nominatim/details?${new URLSearchParams({ osmtype: letter, osmid: id, format: "json", addressdetails: 1, polygon_geojson: 1 })}`);
  if (!view.current()) return;
  view.content.append(closeLink());
  if (!answer.ok) {
    view.content.append(element("h2", `${capital(type)}: ${id}`),
      element("p", { className: "error" }, `Sorry, ${type} #${id} could not be found among the places that have a name, a number or a purpose.`));
    return;
  }
  const found = await answer.json();
  const [lon, lat] = found.centroid.coordinates;
  const name = found.names.name ?? found.names.ref ?? "";
  view.title(name || `${capital(type)} ${id}`);
  view.content.append(element("h2", name ? `${capital(type)}: ${name} (${id})` : `${capital(type)}: ${id}`));
  const address = found.address?.filter((part) => part.isaddress && part.localname && part.type !== "country_code").map((part) => part.localname);
  if (address?.length) view.content.append(element("p", { className: "address" }, [...new Set(address)].join(", ")));
  const [north, east] = [lat.toFixed(7), lon.toFixed(7)];
  view.content.append(element("p", { className: "location" }, "Location: ", link(`/search?query=${north}%2C%20${east}`, `${north}, ${east}`)),
    element("p", { className: "directions" }, link(`/directions?engine=fossgis_osrm_car&to=${north}%2C${east}`, "Directions to here")),
    element("h4", "Tags"), tags(found));
  const shape = L.geoJSON(found.geometry, {
    style: { color: "#f60", weight: 4, fillOpacity: 0.2 },
    pointToLayer: (_, at) => L.circleMarker(at, { radius: 12, color: "#f60" }),
  });
  view.overlay.addLayer(shape);
  if (view.fit) view.map.fitBounds(shape.getBounds(), { maxZoom: 17 });
}

function tags({ names, addresstags, extratags, category, type }) {
  const all = { ...names, [category]: type, ...extratags };
  for (const [key, value] of Object.entries(addresstags ?? {})) all[key.includes(":") ? key : `addr:${key}`] = value;
  const rows = Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => element("tr", element("th", key), element("td", value)));
  return element("table", { className: "browse-tag-list" }, element("tbody", ...rows));
}
