"""The laws of privacy losses as families of moment functions, one file a family of laws.

A loss record says what happened; a law says how its privacy loss L = log P/Q is distributed under P, in the form that
the tilted sum wants: moments on the real line (the Rényi reading), on a vertical line (the numerical reading), decay,
atoms and lattices. Every family holds many records with counts and works on all of them at once.
"""
