"""Figures: one module each, drawn from tables and from nothing else.

A module offers ``draw(tables)``: from frames by table name to a matplotlib figure and the frame
that holds every number it shows. The tables that a figure needs stand in
:data:`cpbalance.names.FIGURE_TABLES`.
"""
