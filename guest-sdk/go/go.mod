module spelunk

go 1.24
