"""Conformance checks for methods and diversifiers, ours and yours.

    import polytta.checks
    polytta.checks.check_method(MyMethod())
    polytta.checks.check_diversifier(MyDiversifier())

Each check is a function that raises AssertionError with a sentence saying what a user would have noticed; those above
put the part and the check before it.
"""

from polytta.checks.conformance import CHECKS as CHECKS
from polytta.checks.conformance import Case as Case
from polytta.checks.conformance import check_diversifier as check_diversifier
from polytta.checks.conformance import check_method as check_method
from polytta.checks.conformance import check_part as check_part
