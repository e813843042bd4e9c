// Which part of the picture is seen, and how large.

export interface Camera {
  x: number; // of the picture, at the left upper corner of the window
  y: number;
  scale: number; // pixels of the window for one of the picture
}

export const scaleLimits = { least: 0.03, most: 3 };

function bounded(scale: number): number {
  return Math.min(scaleLimits.most, Math.max(scaleLimits.least, scale));
}

/** Closer by `factor`; what lies under the window's point (x, y) stays there. */
export function zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = bounded(camera.scale * factor);
  const change = 1 / camera.scale - 1 / scale;
  return { x: camera.x + x * change, y: camera.y + y * change, scale };
}

/** By pixels of the window. */
export function panned(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

export interface Size {
  width: number;
  height: number;
}

const margin = 24;

/** All of the width, and of the height unless that would make it too small to read. */
export function fitted(picture: Size, window: Size, readable = 0.7): Camera {
  const byWidth = (window.width - 2 * margin) / Math.max(1, picture.width);
  const byHeight = (window.height - 2 * margin) / Math.max(1, picture.height);
  const scale = bounded(Math.min(1, byWidth, Math.max(byHeight, readable)));
  const freeY = window.height - picture.height * scale;
  return {
    x: picture.width / 2 - window.width / 2 / scale,
    y: freeY > 2 * margin ? picture.height / 2 - window.height / 2 / scale : -margin / scale,
    scale,
  };
}

/** Moved as little as needed to show a rectangle of the picture. */
export function revealing(
  camera: Camera,
  left: number,
  top: number,
  size: Size,
  window: Size,
): Camera {
  const shift = (low: number, high: number, start: number, length: number) => {
    const space = margin / camera.scale;
    if (high - low + 2 * space > length) return (low + high) / 2 - length / 2;
    if (low - space < start) return low - space;
    return high + space > start + length ? high + space - length : start;
  };
  return {
    ...camera,
    x: shift(left, left + size.width, camera.x, window.width / camera.scale),
    y: shift(top, top + size.height, camera.y, window.height / camera.scale),
  };
}
