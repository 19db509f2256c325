"""The parts of `checkers.emit`: a plan of the function, what languages share, and each of them."""
