"""Runs the tests of the package, one line each, as scripts/test.sh counts them.

A test that cannot run here is skipped with its reason; with CI set it fails instead.
"""

import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Lines(unittest.TestResult):
    def say(self, test, how, text=""):
        name = test.id().rpartition(".")[2].removeprefix("test_")
        print(f"test python::{name} ... {how}")
        print("".join(f"     {line}\n" for line in text.splitlines()), end="", flush=True)

    def addSuccess(self, test):
        self.say(test, "ok")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.say(test, "FAILED", self.failures[-1][1])

    addError = addFailure

    def addSkip(self, test, reason):
        if os.environ.get("CI"):
            self.failures.append((test, reason))
            self.say(test, "FAILED", f"{reason}; in CI everything is there")
        else:
            self.say(test, f"skipped ({reason})")


def main():
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    result = Lines()
    tests = unittest.defaultTestLoader.discover(str(HERE))
    tests.run(result)
    return 0 if result.testsRun and result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
