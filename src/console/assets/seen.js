// What lies far down a page may be large: it is asked for when it is about to be seen.

const MARGIN = "300px";

// Acts once, when the element, which may come into the page later, is about to be seen.
export function whenSeen(element, act, signal) {
  const watch = new IntersectionObserver(
    (changes) => {
      if (!changes.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      act();
    },
    { rootMargin: MARGIN },
  );
  watch.observe(element);
  signal.addEventListener("abort", () => watch.disconnect());
}
