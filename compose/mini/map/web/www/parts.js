// Small components of the views.

// element("p", {className: "note"}, "text", child, ...); the properties are optional.
export function element(name, ...rest) {
  const node = document.createElement(name);
  if (rest[0] && typeof rest[0] === "object" && !(rest[0] instanceof Node)) Object.assign(node, rest.shift());
  node.append(...rest.filter((child) => child != null));
  return node;
}

export function link(address, ...content) {
  return element("a", { href: address }, ...content);
}

export function closeLink() {
  return element("a", { href: "/", className: "close", title: "Close" }, "×");
}

export const number = (count) => `${count}.`;

export function capital(text) {
  return text.replaceAll("_", " ").replace(/(^|\s)\S/g, (letter) => letter.toUpperCase());
}

const ROADS = { trunk: "Trunk Road", primary: "Primary Road", secondary: "Secondary Road", tertiary: "Tertiary Road", residential: "Residential Road",
  unclassified: "Minor Road", living_street: "Living Street", track: "Track", cycleway: "Cycle Path", footway: "Footpath", path: "Path" };

// "Museum", "City Boundary", "Residential Road": the kind of a result in a word or two.
export function kindOf({ category, type, addresstype }) {
  if (category === "boundary") return `${capital(addresstype ?? "")} Boundary`.trim();
  if (category === "highway") return ROADS[type] ?? capital(type);
  if (category === "railway" && type === "station") return "Railway Station";
  if (category === "place" && type === "house" || type === "yes") return capital(category === "place" ? "house" : category);
  return capital(type);
}

export function metres(length) {
  if (length < 1000) return `${Math.round(length)}m`;
  return length < 10000 ? `${(length / 1000).toFixed(1)}km` : `${Math.round(length / 1000)}km`;
}

export function hours(seconds) {
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
}
