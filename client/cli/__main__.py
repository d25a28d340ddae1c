"""The command without its script: `python -m client.cli`."""

from client.cli import main

if __name__ == "__main__":
    main()
