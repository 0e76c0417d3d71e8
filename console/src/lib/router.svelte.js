// The page that is shown stands in the address's hash, so that Back works and one file serves all.
export const route = $state({ page: read() });

function read() {
  return location.hash.replace(/^#\/?/, "").split("?")[0];
}

window.addEventListener("hashchange", () => {
  route.page = read();
});

export function go(page) {
  location.hash = `#/${page}`;
}
