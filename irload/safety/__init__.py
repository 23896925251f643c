"""Protection from untrusted files: limits, checked opening of files, private cache folders, and pinned digests."""
