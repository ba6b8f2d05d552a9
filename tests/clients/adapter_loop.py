"""The loop of an adapter that is written in Python: it reads commands, calls the function of that name, and answers."""
import sys


def serve(*functions):
    commands = {function.__name__: function for function in functions}
    for line in sys.stdin:
        name, *arguments = line.split()
        try:
            commands[name](*arguments)
            answer = "ok"
        except Exception as failure:  # whatever a client raises is the answer
            answer = f"failed: {type(failure).__name__}: {failure}".replace("\n", "; ")
        print(answer, flush=True)
