"""The Textual app: six screens drawn from one Experiment. The only room that imports textual."""
