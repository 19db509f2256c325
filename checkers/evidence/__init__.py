"""The evidence checker: what was called proved is checked again, without the engine that found it.

It rebuilds the claim, takes its conditions apart in its own way, and follows the evidence: each
step of a derivation must be an instance of its rule, down to facts of the claim (`steps`); an
enumeration is repeated, its coverage lemmas included (`enumeration`); a solver's word is asked
again in another encoding (`reasking`). Texts in the evidence are for people and are not read. Only
`spec` is used.
"""
