"""Timing of attention kernels: what to call in which order, on what clock, until when."""
