"""The bench: one topic, replicated by Anabranch and by MirrorMaker 2 on the same embedded brokers, measured alike.

    load        produces the topic
    segments    reads the brokers' log segments: what is there, record for record, without asking a broker
    procs       CPU seconds and memory of a process and all that it starts
    competitor  what a competitor is, and the scene that it is given
    ours        Anabranch as a competitor: its own command line, as a user runs it
    mm2         MirrorMaker 2 as a competitor: dedicated mode, tuned
    watch       follows a competitor from its start to the last replicated record
    race        the whole: brokers, load, competitors in turn, clean-up
    machine     facts about the machine, for the report
    report      figures, medians and ratios as Markdown

`python -m bench race` runs it. Nothing of the product imports it.
"""
