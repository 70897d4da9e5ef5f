// The colours of the heat map: 256 steps whose lightness rises, or on a light page falls, evenly,
// so that what is twice as far along the scale looks so. They are made in OKLCH, a space in which
// equal steps look equal, and go from violet by red to yellow.

const STEPS = 256;

const SCHEMES = {
  // lightness, chroma and hue, at even distances from "hardly anything" to "the most"
  dark: [
    [0.27, 0.07, 285],
    [0.38, 0.13, 305],
    [0.5, 0.17, 345],
    [0.62, 0.18, 20],
    [0.73, 0.16, 45],
    [0.84, 0.15, 75],
    [0.95, 0.12, 102],
  ],
  light: [
    [0.95, 0.045, 98],
    [0.87, 0.11, 88],
    [0.77, 0.15, 68],
    [0.65, 0.18, 42],
    [0.53, 0.19, 22],
    [0.41, 0.16, 350],
    [0.28, 0.12, 310],
  ],
};

export const schemeOfPage = () =>
  getComputedStyle(document.documentElement).colorScheme.includes("dark") ? "dark" : "light";

const toByte = (linear) => {
  const clipped = Math.min(1, Math.max(0, linear));
  const value = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
  return Math.round(255 * value);
};

function rgbOf([lightness, chroma, hue]) {
  const a = chroma * Math.cos((hue * Math.PI) / 180),
    b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3,
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3,
    s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    toByte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    toByte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    toByte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

// The shorter way round the circle.
const hueBetween = (from, to, part) => from + ((((to - from) % 360) + 540) % 360 - 180) * part;

function mix(stops, at) {
  const place = at * (stops.length - 1),
    first = Math.min(stops.length - 2, Math.floor(place)),
    part = place - first;
  const [from, to] = [stops[first], stops[first + 1]];
  return [
    from[0] + (to[0] - from[0]) * part,
    from[1] + (to[1] - from[1]) * part,
    hueBetween(from[2], to[2], part),
  ];
}

// [red, green, blue] of each step, from nothing to the most. `scheme`: "light" or "dark".
export function coloursOf(scheme) {
  const stops = SCHEMES[scheme];
  return Array.from({ length: STEPS }, (_, i) => rgbOf(mix(stops, i / (STEPS - 1))));
}

// Which step shows the value. Contrast below 1 tells small values apart, above 1 large ones; each
// unit of brightness doubles what is shown.
export function stepOf(value, most, { brightness, contrast }) {
  if (!(value > 0) || !(most > 0)) return 0;
  const part = Math.min(1, ((value / most) * 2 ** brightness) ** contrast);
  return Math.round(part * (STEPS - 1));
}

// What a part of the scale, 0 to 1, stands for.
export const valueAt = (part, most, { brightness, contrast }) =>
  (part ** (1 / contrast) * most) / 2 ** brightness;
