document.getElementById("target").textContent = data.target;
document.title = `Spelunk: ${data.target}`;
summary();
findings();
health();
timeline();
const image = checkpoints();
rules();
properties();
sources();
coverage();
about();
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  if (image) image.draw();
});
