// The context menu.
import { element, link } from "./parts.js";
import { chosenEngine } from "./directions.js";

export function contextMenu({ map }) {
  map.on("contextmenu", ({ latlng }) => {
    const here = [latlng.lat.toFixed(5), latlng.lng.toFixed(5)].join("%2C");
    const entries = [[`/directions?engine=${chosenEngine()}&from=${here}${end("to")}`, "Directions from here"],
      [`/directions?engine=${chosenEngine()}${end("from")}&to=${here}`, "Directions to here"], [`/search?query=${here}`, "Show address"]];
    const menu = element("div", { className: "context" }, ...entries.map(([address, text]) => link(address, text)));
    const popup = L.popup({ closeButton: false }).setLatLng(latlng).setContent(menu).openOn(map);
    menu.addEventListener("click", () => map.closePopup(popup));
  });
}

// The other end of a route of which one end has been chosen.
function end(name) {
  const value = document.querySelector(`[name='route_${name}']`).value.trim();
  return location.pathname === "/directions" && value ? `&${name}=${encodeURIComponent(value)}` : "";
}
