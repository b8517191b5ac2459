# The quick parser reads one line after the other, keeps the last four in a ring and writes them out when a blank line comes.
