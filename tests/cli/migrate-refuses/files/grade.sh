# reads expected.md
