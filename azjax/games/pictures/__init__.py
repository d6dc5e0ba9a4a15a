"""How the games look: one look a file, each a function of plain arrays that returns an SVG document."""
