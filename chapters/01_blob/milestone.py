"""Milestone 1: transposes, subsamples, and blurs the image of a digit with your views, without a copy."""
import numpy as np

import flowedu as flow

SHADES = " .:*#"


def drawn(picture: np.ndarray) -> list[str]:
    """Return the image as rows of text. A larger value has a darker character."""
    top = max(float(picture.max()), 1e-9)
    return ["".join(SHADES[int(v / top * (len(SHADES) - 1) + 0.5)] * 2
                    for v in row) for row in picture.clip(0)]


def beside(*pictures) -> str:
    """Return the images next to each other, as text."""
    rows = [drawn(p) for p in pictures]
    height = max(map(len, rows))
    wide = [len(r[0]) for r in rows]
    return "\n".join("   ".join((r[i] if i < len(r) else "").ljust(w) for r, w in zip(rows, wide)).rstrip()
                     for i in range(height))


def main() -> None:
    (images, _), _ = flow.data.load_mnist()
    x = flow.tensor(images[0][0, 0])                                   # 28 x 28 pixels
    half = x[4:24:2, 4:24:2]                                           # every second pixel of the middle
    windows = half.unfold(0, 3, 1).unfold(1, 3, 1)                     # 8 x 8 windows of 3 x 3
    views = {"the digit": x, "every second pixel": half, "transpose": half.T, "all 3 x 3 windows": windows}
    copied = [name for name, v in views.items() if not np.shares_memory(v.numpy(), x.numpy())]
    blurred = windows.mean((2, 3))
    # The weights subtract the upper row of each window from its lower row.
    edges = (windows * flow.tensor([[-1.0], [0.0], [1.0]]).expand(3, 3)).sum((2, 3))
    print("every second pixel, its transpose, the mean of each window, and the horizontal edges:")
    print(beside(half.numpy(), half.T.numpy(), blurred.numpy(), edges.numpy()))
    row = flow.tensor(np.arange(10, dtype=np.float32))
    stretched = half + row                                             # broadcasting

    p = images[0][0, 0][4:24:2, 4:24:2]
    seen = np.lib.stride_tricks.sliding_window_view(p, (3, 3))
    right = {"transpose": (half.T.numpy(), p.T), "the windows": (windows.numpy(), seen),
             "their means": (blurred.numpy(), seen.mean((2, 3))),
             "the edges": (edges.numpy(), (seen[:, :, 2] - seen[:, :, 0]).sum(2)),
             "broadcasting": (stretched.numpy(), p + np.arange(10)),
             "reshape": (half.T.reshape(100).numpy(), p.T.reshape(100))}
    missed = [name for name, (mine, want) in right.items()
              if mine.shape != want.shape or not np.allclose(mine, want, atol=1e-5)]
    for name, v in views.items():
        print(f"{name:18} shape {tuple(v.shape)!s:15} strides {tuple(v.strides)}")
    if missed or copied:
        print("milestone 1 missed: " + (f"{missed[0]} differs from NumPy's" if missed
                                        else f"{copied[0]} was copied"))
        raise SystemExit(1)
    print(f"milestone 1 reached: {len(views)} views of one block, {x.numpy().nbytes:,} bytes in all, and "
          f"no copy")


if __name__ == "__main__":
    main()
