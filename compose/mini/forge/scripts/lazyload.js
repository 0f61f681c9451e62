// Shows pictures that wait below `data-src`. The pages want this function; Debian's lazyload is a plug-in of jQuery by the same name.
window.lazyload = function () {
  for (const image of document.querySelectorAll("img[data-src]")) {
    image.loading = "lazy";
    image.src = image.dataset.src;
  }
};
