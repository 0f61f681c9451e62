// Loads pictures whose address is in `data-src`. The pages need this function; Debian's lazyload is a jQuery plug-in of the same name.
window.lazyload = function () {
  for (const image of document.querySelectorAll("img[data-src]")) {
    image.loading = "lazy";
    image.src = image.dataset.src;
  }
};
