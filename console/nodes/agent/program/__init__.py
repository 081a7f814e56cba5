"""The program that lives on a node during the window: standard library only, any python3 from 3.8."""
